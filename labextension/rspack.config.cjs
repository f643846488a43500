// The changes to the rspack configuration of @jupyter/builder.
module.exports = {
  optimization: {
    // Files are named after their content.
    chunkIds: 'named',
    // The default IDs depend on the build folder, but all builds of a commit must be identical.
    moduleIds: 'natural',
    // Modules that several chunks share are loaded once. By default, small ones are copied into each
    // chunk.
    splitChunks: { chunks: 'async', minSize: 0 },
  },
};

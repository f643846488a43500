// What @jupyter/builder adds to its own configuration.
module.exports = {
  optimization: {
    // The names of files tell what is in them.
    chunkIds: 'named',
    // What several parts share is loaded once, however small it is: by default it would be copied into each of them.
    splitChunks: { chunks: 'async', minSize: 0 },
  },
};

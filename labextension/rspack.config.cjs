// What @jupyter/builder adds to its own configuration.
module.exports = {
  optimization: {
    // The names of files tell what is in them.
    chunkIds: 'named',
    // By default they depend on the folder of the build, and two builds of a commit have to be the same.
    moduleIds: 'natural',
    // What several parts share is loaded once, however small it is: by default it would be copied into each of them.
    splitChunks: { chunks: 'async', minSize: 0 },
  },
};

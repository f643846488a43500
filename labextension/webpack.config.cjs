// What several parts share is loaded once, however small it is: by default it would be copied into each of them.
module.exports = { optimization: { splitChunks: { chunks: 'async', minSize: 0 } } };

console.error('the shop does not answer');
process.exit(4);

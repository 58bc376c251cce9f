console.log('all well');

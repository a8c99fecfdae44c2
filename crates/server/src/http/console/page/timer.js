// The worker of pause.js: replies with the number of each request after its time.

onmessage = ({ data: { id, ms } }) => setTimeout(() => postMessage(id), ms);

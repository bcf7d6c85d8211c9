module.exports = (text, width) => String(text).padStart(width);

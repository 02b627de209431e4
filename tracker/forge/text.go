package forge

// MaxText is the longest text that ralph posts, in bytes. GitHub takes no more.
const MaxText = 65536

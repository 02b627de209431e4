package session

// Enter is enter, for the external test package.
var Enter = enter

// Entries is entries, for the external test package.
var Entries = entries

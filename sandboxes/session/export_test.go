package session

// Enter opens the folder that an earlier look found.
var Enter = enter

// Entries visits what is in a folder.
var Entries = entries

package session

// Enter opens the folder that an earlier look found.
var Enter = enter

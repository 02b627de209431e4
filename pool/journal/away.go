package journal

import "errors"

// ErrAway means that the database that all machines share does not answer or accepts no writes.
var ErrAway = errors.New("the database is unavailable")

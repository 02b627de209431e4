package journal

import "errors"

// ErrUnavailable means that the database that all machines share does not answer or accepts no writes.
var ErrUnavailable = errors.New("the database is unavailable")

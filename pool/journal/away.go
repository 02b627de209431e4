package journal

import "errors"

// ErrAway says that the database of all machines does not answer, or takes no writes.
var ErrAway = errors.New("the database is away")

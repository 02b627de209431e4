package tracker

// RefusedError is returned if the tracker rejects ralph altogether: an invalid token, no permission, a project that has moved.
// Calls for other issues fail too until a person fixes the cause, which the error describes.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string {
	if e.Err == nil {
		return "tracker refuses, and gives no reason"
	}
	return "tracker refuses: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

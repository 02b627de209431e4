package tracker

// RefusedError says that the tracker refuses ralph altogether: a bad token, no permission, a project that has moved.
// Other issues would fail too until a person changes something; the error says what.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string {
	if e.Err == nil {
		return "tracker refuses, and gives no reason"
	}
	return "tracker refuses: " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

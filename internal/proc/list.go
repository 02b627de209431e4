package proc

// Listed is a process as List saw it.
type Listed struct {
	PID, Parent, Session int
	Ended                bool // only not yet reaped
}

// List lists the processes that this one can see, without the kernel's own. It is safe for concurrent use.
func List() ([]Listed, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	listed := make([]Listed, len(all))
	for i, p := range all {
		listed[i] = Listed{PID: p.pid, Parent: p.parent, Session: p.session, Ended: p.zombie}
	}
	return listed, nil
}

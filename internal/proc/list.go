package proc

// Listed describes a process at the time of List.
type Listed struct {
	PID, Parent, Session int
	Ended                bool // a zombie
}

// List lists the processes visible to this one, without kernel threads. It is safe for concurrent use.
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

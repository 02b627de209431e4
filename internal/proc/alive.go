package proc

import "strconv"

// Alive reports whether the process with this PID and start token still runs. A zombie does not.
func Alive(pid int, started string) bool {
	p, err := inspect(pid)
	return err == nil && !p.zombie && started != "" && token(p) == started
}

// Started returns a token that distinguishes a process from a later one with the same PID, also across a restart of the
// machine. It fails if there is no such process.
func Started(pid int) (string, error) {
	p, err := inspect(pid)
	if err != nil {
		return "", err
	}
	return token(p), nil
}

func token(p process) string { return strconv.FormatUint(p.started, 10) + "@" + bootID() }

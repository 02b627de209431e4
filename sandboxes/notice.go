package sandboxes

import "fmt"

// Notice is one line for people, and what it is about: nobody has to read the line for that.
type Notice struct {
	Text string `json:"text"`
	About
}

func (n Notice) String() string { return n.Text }

// About is what a notice is about, where that is known. The zero value says nothing.
type About struct {
	Cause Cause  `json:"cause,omitempty"`
	Host  string `json:"host,omitempty"` // of a connection that was not made
	Port  int    `json:"port,omitempty"` // of it; 0: not known
}

// Cause is what a setting can change. The set is open.
type Cause string

const (
	MemoryLimit    Cause = "memory-limit"    // processes were killed there
	ProcessLimit   Cause = "process-limit"   // processes were killed there
	NotAllowed     Cause = "not-allowed"     // no rule allows Host and Port
	AddressRefused Cause = "address-refused" // Host leads to an address that only a rule for private ones allows
)

// Noticef makes a notice that is about nothing else.
func Noticef(format string, args ...any) Notice { return Notice{Text: fmt.Sprintf(format, args...)} }

// MemoryNotice says that processes were killed because the sandbox had used up its memory, in bytes.
func MemoryNotice(processes int, memory int64) Notice {
	return killed(processes, MemoryLimit, fmt.Sprintf("the memory limit of %d MB", memory>>20))
}

// PIDsNotice says that processes were killed because there were too many.
func PIDsNotice(processes, most int) Notice {
	return killed(processes, ProcessLimit, fmt.Sprintf("the process limit of %d", most))
}

func killed(processes int, cause Cause, limit string) Notice {
	were := "1 process was"
	if processes != 1 {
		were = fmt.Sprintf("%d processes were", processes)
	}
	return Notice{Text: were + " killed at " + limit, About: About{Cause: cause}}
}

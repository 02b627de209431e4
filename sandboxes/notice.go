package sandboxes

import "fmt"

// Notice is one line for people, with its subject in structured form, so that no program has to parse the text.
type Notice struct {
	Text string `json:"text"`
	Subject
}

func (n Notice) String() string { return n.Text }

// Subject is the subject of a notice. The zero value means that the subject is unknown.
type Subject struct {
	Cause Cause  `json:"cause,omitempty"`
	Host  string `json:"host,omitempty"` // host of a refused connection
	Port  int    `json:"port,omitempty"` // port of that connection; 0: unknown
}

// Cause names a cause that a setting can change. Other values may be added.
type Cause string

const (
	MemoryLimit    Cause = "memory-limit"    // processes were killed at the memory limit
	ProcessLimit   Cause = "process-limit"   // processes were killed or refused at the process limit
	NotAllowed     Cause = "not-allowed"     // no rule allows Host and Port
	AddressRefused Cause = "address-refused" // Host resolves to an address that only a rule for private addresses allows
	ModelRefused   Cause = "model-refused"   // a model was refused that the user can allow
)

// Noticef formats a notice with a zero Subject.
func Noticef(format string, args ...any) Notice { return Notice{Text: fmt.Sprintf(format, args...)} }

// MemoryNotice reports how many processes were killed at the sandbox's memory limit, in bytes.
func MemoryNotice(processes int, memory int64) Notice {
	return killed(processes, MemoryLimit, fmt.Sprintf("the memory limit of %d MB", memory>>20))
}

// PIDsNotice reports how many processes were killed at the process limit.
func PIDsNotice(processes, most int) Notice {
	return killed(processes, ProcessLimit, fmt.Sprintf("the process limit of %d", most))
}

// PIDsReached reports that the process limit was reached. The kernel then refuses new processes, and kills none.
func PIDsReached(most int) Notice {
	return Notice{Text: fmt.Sprintf("the process limit of %d was reached", most), Subject: Subject{Cause: ProcessLimit}}
}

func killed(processes int, cause Cause, limit string) Notice {
	were := "1 process was"
	if processes != 1 {
		were = fmt.Sprintf("%d processes were", processes)
	}
	return Notice{Text: were + " killed at " + limit, Subject: Subject{Cause: cause}}
}

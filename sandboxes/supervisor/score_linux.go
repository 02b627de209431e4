package supervisor

import "os"

// commandScore is what the kernel adds to a command's size, in thousandths of all memory, when memory is short and it
// chooses a process to kill: however large the supervisor is, a command goes first.
const commandScore = "500"

// Score is the memory score of this process.
type Score struct {
	file *os.File
	own  []byte // as it was
}

// OpenScore opens it. Once the process is protected from its commands it cannot: so this comes first. It is nil where even
// that is not allowed, such as for a program that its user may not read.
func OpenScore() *Score {
	const path = "/proc/self/oom_score_adj"
	own, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	return &Score{file, own}
}

// Lend calls start, which starts a process, with the score of a command: what it starts, and all that this starts, has
// that score from its first moment on. It returns false where there is no score to lend.
func (s *Score) Lend(start func()) bool {
	if s == nil {
		start()
		return false
	}
	_, err := s.file.WriteAt([]byte(commandScore), 0)
	start()
	_, _ = s.file.WriteAt(s.own, 0) // it was allowed before
	return err == nil
}

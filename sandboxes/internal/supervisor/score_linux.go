package supervisor

import "os"

// commandScore is the OOM score adjustment of commands, in thousandths of all memory. It makes the kernel kill a command
// before the supervisor, however large the supervisor is.
const commandScore = "500"

// Score is the OOM score adjustment of this process.
type Score struct {
	file     *os.File
	original []byte // its original value
}

// OpenScore opens the score. Call it before the process protects itself from its commands: then it no longer can. It
// returns nil if the process has no access, for example because its user may not read its program.
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

// Lend calls start, which starts a process, while this process has the score of a command, so that the new process and its
// children have that score from their first moment. It returns false if the score could not be set.
func (s *Score) Lend(start func()) bool {
	if s == nil {
		start()
		return false
	}
	_, err := s.file.WriteAt([]byte(commandScore), 0)
	start()
	_, _ = s.file.WriteAt(s.original, 0) // restores a value that was permitted before
	return err == nil
}

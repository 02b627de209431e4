package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Start is an entry in the log: one start of the scripted agent.
type Start struct {
	Key       string `json:"key"`
	Iteration int    `json:"iteration"`
	PID       int    `json:"pid"`
	Branch    string `json:"branch,omitempty"`
}

// appendStart appends a line in one write, so that concurrent agents do not mix their lines.
func appendStart(file string, s Start) error {
	line, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("log the start: %w", err)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log the start: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// ReadLog returns the starts in a log, oldest first. A missing log is empty.
func ReadLog(file string) ([]Start, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var starts []Start
	for line := range bytes.Lines(b) {
		var s Start
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", file, len(starts)+1, err)
		}
		starts = append(starts, s)
	}
	return starts, nil
}

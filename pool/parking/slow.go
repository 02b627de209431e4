package parking

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/proc"
)

// Slow records that a process starts fewer concurrent runs of an agent, because the agent's model service has refused
// requests.
type Slow struct {
	Agent   string    `json:"agent"`
	Limit   int       `json:"limit"` // concurrent runs at first
	Since   time.Time `json:"since"`
	Most    int       `json:"most"` // concurrent runs without refusals
	PID     int       `json:"pid"`
	Process string    `json:"process"` // distinguishes the process from a later one with the same PID
}

// Allowed returns how many runs may be running now.
func (s Slow) Allowed(now time.Time) int { return Pace{s.Limit, s.Since}.Allowed(now, s.Most) }

// Write stores the record in the folder, where other processes see it.
func (s Slow) Write(dir string) error {
	if _, err := ReadSlow(dir, s.Since); err != nil { // removes the records of dead processes
		return err
	}
	text, err := json.Marshal(s)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		name := fmt.Sprintf("%d-%s.json", s.PID, url.PathEscape(s.Agent))
		err = disk.WriteFile(filepath.Join(dir, name), text, 0o600, disk.Process)
	}
	return err
}

// ReadSlow returns the valid records of live processes in the folder, and removes the others and damaged ones.
func ReadSlow(dir string, now time.Time) (list []Slow, err error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), disk.TempPrefix) { // it is just being written
			continue
		}
		path := filepath.Join(dir, f.Name())
		text, rerr := os.ReadFile(path)
		if errors.Is(rerr, fs.ErrNotExist) {
			continue
		}
		if rerr != nil {
			err = errors.Join(err, rerr)
			continue
		}
		var s Slow
		switch jerr := json.Unmarshal(text, &s); {
		case jerr == nil && s.Allowed(now) < s.Most && proc.Alive(s.PID, s.Process):
			list = append(list, s)
		default:
			if rerr := os.Remove(path); !errors.Is(rerr, fs.ErrNotExist) { // another process may have removed it
				err = errors.Join(err, rerr)
			}
		}
	}
	return list, err
}

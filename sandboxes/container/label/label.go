// Package label marks an engine's objects of ralph's runs with labels, and reads these. Package container uses it. It has
// no state.
package label

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/internal/proc"
)

const (
	run     = "ralph.run"
	id      = "ralph.id"      // of the run; its name may contain characters that filters do not support
	state   = "ralph.state"   // of the state folder, for the same reason
	process = "ralph.process" // the creator: "PID START HOST"
)

// Args returns the arguments that mark an object as the run's.
func Args(name, stateDir string) []string {
	return []string{
		"--label", run + "=" + name, "--label", id + "=" + ID(name), "--label", state + "=" + ID(stateDir), "--label", process + "=" + self(),
	}
}

// ID returns a short hash of a name, of letters and digits.
func ID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:6])
}

// OfRun returns the filter for the objects of a run.
func OfRun(name string) string { return "label=" + id + "=" + ID(name) }

// OfState returns the filter for the objects of a state folder.
func OfState(dir string) string { return "label=" + state + "=" + ID(dir) }

// Abandoned returns the run of an object, and whether the process that created it was on this host and has ended. text has
// the object's labels as JSON; an empty text means that the object is gone, so ended is false.
func Abandoned(text string) (name string, ended bool, err error) {
	if strings.TrimSpace(text) == "" {
		return "", false, nil
	}
	var labels map[string]string
	if err := json.Unmarshal([]byte(text), &labels); err != nil {
		return "", false, err
	}
	pid, rest, _ := strings.Cut(labels[process], " ")
	started, on, _ := strings.Cut(rest, " ")
	number, unreadable := strconv.Atoi(pid)
	host, nameless := os.Hostname()
	told := unreadable == nil && nameless == nil && host == on
	return labels[run], told && !proc.Alive(number, started), nil
}

// self returns the label of this process, or "" if it cannot be determined.
func self() string {
	started, err := proc.Started(os.Getpid())
	host, hostErr := os.Hostname()
	if err != nil || hostErr != nil {
		return ""
	}
	return fmt.Sprint(os.Getpid(), " ", started, " ", host)
}

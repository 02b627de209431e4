// Package label marks what an engine has of ralph's runs, and reads the marks. Package container calls it. It holds no state.
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
	id      = "ralph.id"      // of the run; filters cannot find every character of its name
	state   = "ralph.state"   // of the state folder, likewise
	process = "ralph.process" // who has made it: "PID START HOST"
)

// Args are the arguments that mark something as the run's.
func Args(name, stateDir string) []string {
	return []string{
		"--label", run + "=" + name, "--label", id + "=" + ID(name), "--label", state + "=" + ID(stateDir), "--label", process + "=" + self(),
	}
}

// ID is a short name that consists of letters and digits.
func ID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:6])
}

// OfRun is the filter for what a run has.
func OfRun(name string) string { return "label=" + id + "=" + ID(name) }

// OfState is the filter for what belongs to a state folder.
func OfState(dir string) string { return "label=" + state + "=" + ID(dir) }

// Abandoned reports, by the labels of something as JSON, the run, and that the process that has made it has ended on this host. An
// empty text is that of something that is gone: nobody has abandoned it.
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

// self is the label of this process; empty where it cannot be told.
func self() string {
	started, err := proc.Started(os.Getpid())
	host, hostErr := os.Hostname()
	if err != nil || hostErr != nil {
		return ""
	}
	return fmt.Sprint(os.Getpid(), " ", started, " ", host)
}

package scripted

import (
	"fmt"
	"io"
	"reflect"
	"regexp"

	"github.com/goccy/go-yaml"
)

// Script defines the agent's actions by issue key. The key "*" applies to all other issues.
//
//	issues:
//	  fix-sum:
//	    - - write: {path: sum.sh, text: "echo $(($1 + $2))\n"}   # first iteration
//	      - commit: Add sum
//	    - - run: sh checks/run.sh fix-sum                        # second iteration, and all that follow
//	      - say: <promise>COMPLETE</promise>
type Script struct {
	Issues map[string][][]Action `yaml:"issues"`
}

// Action is one action; exactly one field must be set. In strings {{key}}, {{title}}, {{branch}}, {{iteration}} and {{pid}}
// are replaced, except in shell lines, which can use the RALPH_* variables.
type Action struct {
	// Work.

	Write  *File  `yaml:"write,omitempty"`  // create or replace a file of the worktree
	Append *File  `yaml:"append,omitempty"` // append to a file of the worktree
	Run    string `yaml:"run,omitempty"`    // sh -c; if it fails, the agent ends with its status
	Try    string `yaml:"try,omitempty"`    // sh -c; a failure is only printed
	Commit string `yaml:"commit,omitempty"` // commit everything, with this message
	Say    string `yaml:"say,omitempty"`    // print a line
	Stderr string `yaml:"stderr,omitempty"` // print a line on standard error

	// Talking to a test.

	Expect string `yaml:"expect,omitempty"` // regular expression that the prompt must match; otherwise exit 9
	Prompt string `yaml:"prompt,omitempty"` // path of a file to which the prompt is written
	Touch  string `yaml:"touch,omitempty"`  // path of a file to create, as a signal to a waiting test
	Wait   string `yaml:"wait,omitempty"`   // path of a file to wait for
	Alone  string `yaml:"alone,omitempty"`  // path of a file to lock until the end; if another agent holds the lock, exit 8

	// Misbehaving.

	IgnoreTerm bool   `yaml:"ignore_term,omitempty"` // ignore SIGTERM and SIGINT from here on
	Orphan     bool   `yaml:"orphan,omitempty"`      // start a process in a new session that keeps stdout open
	Hang       bool   `yaml:"hang,omitempty"`        // do nothing until killed
	Kill       string `yaml:"kill,omitempty"`        // end by this signal: TERM, INT or KILL
	Exit       *int   `yaml:"exit,omitempty"`        // end with this status
	Garbage    int    `yaml:"garbage,omitempty"`     // number of bytes to print that are not text
	Huge       int    `yaml:"huge,omitempty"`        // length in bytes of one line to print
	Grease     bool   `yaml:"grease,omitempty"`      // print events that no decoder knows
}

// File is a file of the worktree. Its path is relative and must stay inside.
type File struct {
	Path string `yaml:"path"`
	Text string `yaml:"text"`
	Mode uint32 `yaml:"mode,omitempty"` // default 0644
}

// Parse reads a script. It rejects unknown keys, actions with more or less than one field, and invalid expressions.
func Parse(r io.Reader) (s Script, err error) {
	defer func() { // the YAML package panics on some input
		if p := recover(); p != nil {
			s, err = Script{}, fmt.Errorf("parse script: %v", p)
		}
	}()
	b, err := io.ReadAll(r)
	if err != nil {
		return Script{}, err
	}
	if err := yaml.UnmarshalWithOptions(b, &s, yaml.Strict()); err != nil {
		return Script{}, fmt.Errorf("parse script: %w", err)
	}
	for key, entries := range s.Issues {
		for i, actions := range entries {
			for j, a := range actions {
				if err := a.check(); err != nil {
					return Script{}, fmt.Errorf("issue %s, iteration %d, action %d: %w", key, i+1, j+1, err)
				}
			}
		}
	}
	return s, nil
}

func (a Action) check() error {
	v, set := reflect.ValueOf(a), 0
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("says %d things, want 1", set)
	}
	if _, err := regexp.Compile(a.Expect); err != nil {
		return fmt.Errorf("expect: %w", err)
	}
	if _, known := signals()[a.Kill]; a.Kill != "" && !known {
		return fmt.Errorf("kill: %q is none of TERM, INT, KILL", a.Kill)
	}
	if a.Garbage < 0 || a.Huge < 0 {
		return fmt.Errorf("a number of bytes cannot be negative")
	}
	return nil
}

// actions returns the key's entry with that number, from 1. The last one repeats.
func (s Script) actions(key string, entry int) []Action {
	entries, ok := s.Issues[key]
	if !ok {
		entries = s.Issues["*"]
	}
	if len(entries) == 0 {
		return nil
	}
	return entries[min(entry, len(entries))-1]
}

package sbx_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shim is the state folder of the simulated sbx: a file for each microVM, the record of all calls, and optionally prepared
// answers in answers/VERB.
type shim string

// callRecord is one call of sbx.
type callRecord struct {
	Args  []string
	Stdin string `json:",omitempty"` // only for secrets
}

func (s shim) path(name ...string) string {
	return filepath.Join(append([]string{string(s)}, name...)...)
}

// answer makes the shim print text and exit with a status for a verb, such as "diagnose" or "secret ls".
func (s shim) answer(t *testing.T, verb, text string, status int) {
	t.Helper()
	if err := os.MkdirAll(s.path("answers"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path("answers", verb), fmt.Appendf(nil, "%d %s", status, text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// calls returns all calls so far.
func (s shim) calls(t *testing.T) (all []callRecord) {
	t.Helper()
	text, err := os.ReadFile(s.path("calls"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var c callRecord
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// play simulates one call of sbx.
func play(s shim, args []string) int {
	status, err := s.run(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ERROR:", err)
		return 1
	}
	return status
}

func (s shim) run(args []string) (int, error) {
	for _, name := range []string{"SSH_AUTH_SOCK", "GITHUB_TOKEN", "KEY_OF_THIS_TEST"} {
		if _, there := os.LookupEnv(name); there {
			return 0, fmt.Errorf("sbx was given %s", name)
		}
	}
	call := callRecord{Args: args}
	if slices.Equal(args[:min(2, len(args))], []string{"secret", "set"}) {
		text, err := io.ReadAll(os.Stdin)
		if err != nil {
			return 0, err
		}
		call.Stdin = string(text)
	}
	if err := s.record(call); err != nil {
		return 0, err
	}
	for _, verb := range []string{args[0], strings.Join(args[:min(2, len(args))], " ")} {
		if text, err := os.ReadFile(s.path("answers", verb)); err == nil {
			var status int
			code, rest, _ := strings.Cut(string(text), " ")
			_, err := fmt.Sscan(code, &status)
			out := os.Stdout
			if status != 0 {
				out = os.Stderr
			}
			_, _ = io.WriteString(out, rest)
			return status, err
		}
	}
	switch args[0] {
	case "version":
		fmt.Println("sbx version: v0.46.0 0123abc")
	case "diagnose":
		fmt.Println(`{"checks":[{"name":"Virtualization","status":"pass"},{"name":"Login","status":"pass"}]}`)
	case "create":
		var shown []string
		for _, a := range args {
			if path, ok := strings.CutSuffix(a, ":ro"); ok {
				shown = append(shown, path)
			}
		}
		return 0, s.create(args[slices.Index(args, "--name")+1], shown)
	case "ls":
		return 0, s.list()
	case "rm":
		return 0, s.remove(args[len(args)-1])
	case "stop":
		return 0, s.stop(args[1])
	case "exec":
		return s.exec(args[1:])
	case "policy", "secret":
		if slices.Equal(args[:2], []string{"policy", "log"}) {
			fmt.Println(`{"blocked_hosts":[],"allowed_hosts":[]}`)
		}
	default:
		return 0, fmt.Errorf("unknown command %q", args[0])
	}
	return 0, nil
}

func (s shim) record(c callRecord) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(s.path("calls"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

func (s shim) list() error {
	boxes, err := filepath.Glob(s.path("boxes", "*"))
	if err != nil {
		return err
	}
	list := []map[string]string{}
	for _, b := range boxes {
		list = append(list, map[string]string{"name": filepath.Base(b), "agent": "shell", "status": "running"})
	}
	fmt.Println("Starting daemon")
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"sandboxes": list})
}

func (s shim) remove(name string) error {
	if err := s.stop(name); err != nil {
		return err
	}
	return os.Remove(s.path("boxes", name))
}

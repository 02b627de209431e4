package sbx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes/internal/engine"
)

// The oldest supported release of sbx.
const (
	oldestMajor = 0
	oldestMinor = 46
)

// Finding is one check of "sbx diagnose".
type Finding struct {
	Name    string `json:"name"`
	Status  string `json:"status"` // "pass", "skip", "warn" or "fail"
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// Diagnose returns the checks of "sbx diagnose": of the installation, the login and virtualisation.
func (p *Provider) Diagnose(ctx context.Context) ([]Finding, error) {
	text, err := p.call(ctx, "diagnose", "--format", "json")
	if call, ok := errors.AsType[*engine.CallError](err); ok && strings.Contains(call.Message, "unknown flag") { // older flag
		text, err = p.call(ctx, "diagnose", "-o", "json")
	}
	findings, decodeErr := readFindings(text)
	if decodeErr == nil { // the exit status is an error if a check has failed
		return findings, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("read sbx diagnose: %w", decodeErr)
}

// Check reports whether sbx is installed, is new enough, and finds no problem itself.
func (p *Provider) Check(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.configErr != nil {
		return fmt.Errorf("configure sbx: %w", p.configErr)
	}
	text, err := p.call(ctx, "version")
	if err != nil {
		return err
	}
	if err := newEnough(text); err != nil {
		return err
	}
	findings, err := p.Diagnose(ctx)
	if err != nil {
		return err
	}
	for _, f := range findings {
		if f.Status == "fail" {
			return errors.New(oneLine(fmt.Sprintf("sbx: %s: %s; %s", f.Name, f.Message, hint(f))))
		}
	}
	return nil
}

func hint(f Finding) string {
	if f.Hint == "" {
		return "run sbx diagnose for details"
	}
	return f.Hint
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// newEnough checks the output of "sbx version".
func newEnough(text string) error {
	m := regexp.MustCompile(`\bv?(\d{1,6})\.(\d{1,6})\.\d`).FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("sbx version prints %.80q, which is not a version; ralph needs %d.%d or newer", text, oldestMajor, oldestMinor)
	}
	major, _ := strconv.Atoi(m[1]) // digits only
	minor, _ := strconv.Atoi(m[2])
	if major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		return fmt.Errorf("sbx %d.%d is too old: ralph needs %d.%d or newer; upgrade Docker Sandboxes",
			major, minor, oldestMajor, oldestMinor)
	}
	return nil
}

// readFindings decodes the output of "sbx diagnose".
func readFindings(text string) ([]Finding, error) {
	var report struct {
		Checks []Finding `json:"checks"`
	}
	if err := decode(text, &report); err != nil {
		return nil, err
	}
	if len(report.Checks) == 0 {
		return nil, errors.New("it lists no checks")
	}
	return report.Checks, nil
}

// readNames decodes the output of "sbx ls".
func readNames(text string) ([]string, error) {
	var list struct {
		Sandboxes *[]struct {
			Name string `json:"name"`
		} `json:"sandboxes"`
	}
	if err := decode(text, &list); err != nil {
		return nil, err
	}
	if list.Sandboxes == nil {
		return nil, errors.New("it has no list of sandboxes")
	}
	var names []string
	for _, s := range *list.Sandboxes {
		names = append(names, s.Name)
	}
	return names, nil
}

// decode decodes a JSON object, which may follow messages about the daemon of sbx.
func decode(text string, to any) error {
	start := strings.Index("\n"+text, "\n{")
	if start < 0 {
		return errors.New("it prints no JSON object")
	}
	return json.Unmarshal([]byte(text[start:]), to)
}

package mockmodel

import (
	"bytes"
	_ "embed" // the built-in scenarios
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Scenarios are scenarios by name.
type Scenarios map[string]Scenario

// Scenario is a scripted model: its steps, or its error.
type Scenario struct {
	// About describes the purpose.
	About string `json:"about"`
	// Steps are the model's messages in order. The last one repeats.
	Steps []Step `json:"steps,omitempty"`
	// When overrides Steps for matching prompts. The first match wins.
	When []Variant `json:"when,omitempty"`
	// Fault is an error that replaces steps.
	Fault *Fault `json:"fault,omitempty"`
}

// Variant has the steps for some prompts.
type Variant struct {
	Prompt string `json:"prompt"` // regular expression
	Steps  []Step `json:"steps"`
}

// Step is a message of the model. In Text and Command, {{turn}} is the number of the user's message, and {{prompt:REGEX}}
// the match in the prompt: its first group, or the whole match if it has no group. In a Command the match is quoted for the
// shell. A REGEX must not contain "}}".
type Step struct {
	Thinking string `json:"thinking,omitempty"`
	Text     string `json:"text,omitempty"`
	Lines    int    `json:"lines,omitempty"` // number of lines of filler between Text and End
	End      string `json:"end,omitempty"`
	Calls    []Call `json:"calls,omitempty"`
	Hang     bool   `json:"hang,omitempty"`     // stall forever after the first piece of text
	Truncate bool   `json:"truncate,omitempty"` // drop the connection after the first piece of text
}

// Call is a call of the shell tool, with the name and parameters that the request defines.
type Call struct {
	Command string `json:"command"`
}

// Fault is an error of the service.
type Fault struct {
	Status     int    `json:"status"`
	Type       string `json:"type"`
	Message    string `json:"message"`
	RetryAfter string `json:"retry_after,omitempty"` // header, in seconds
	LimitEnd   string `json:"limit_end,omitempty"`   // Anthropic's header, a Unix time
	First      int    `json:"first,omitempty"`       // number of requests that fail; 0: all
	FromStep   int    `json:"from_step,omitempty"`   // steps before this one succeed
}

//go:embed scenarios.json
var builtin []byte

// Builtin returns a new map of the built-in scenarios.
func Builtin() Scenarios {
	all, err := Parse(bytes.NewReader(builtin))
	if err != nil {
		panic("built-in scenarios: " + err.Error()) // a test checks them
	}
	return all
}

// Parse reads scenarios from a JSON object of scenarios by name. It rejects unknown fields, invalid expressions and
// scenarios without an answer.
func Parse(r io.Reader) (Scenarios, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var all Scenarios
	if err := dec.Decode(&all); err != nil {
		return nil, fmt.Errorf("parse scenarios: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("parse scenarios: text after the end, at byte %d", dec.InputOffset())
	}
	for name, s := range all {
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("scenario %q: %w", name, err)
		}
	}
	return all, nil
}

func (s Scenario) check() error {
	f := s.Fault
	if f != nil && (f.Status < 400 || f.Status > 599) {
		return fmt.Errorf("status %d is not an error", f.Status)
	}
	always := f != nil && f.First == 0 && f.FromStep == 0
	if len(s.Steps) == 0 && !always {
		return fmt.Errorf("has no steps")
	}
	steps := s.Steps
	for _, v := range s.When {
		if _, err := regexp.Compile(v.Prompt); err != nil {
			return fmt.Errorf("prompt: %w", err)
		}
		if len(v.Steps) == 0 {
			return fmt.Errorf("prompt %q has no steps", v.Prompt)
		}
		steps = append(steps[:len(steps):len(steps)], v.Steps...)
	}
	for _, st := range steps {
		for _, text := range append([]string{st.Text, st.End}, st.commands()...) {
			if _, err := fill(text, conversation{}, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (st Step) commands() []string {
	var lines []string
	for _, c := range st.Calls {
		lines = append(lines, c.Command)
	}
	return lines
}

// step returns the conversation's step with its placeholders filled in. A conversation without tools is internal to the CLI
// (a title, a summary): it gets a short answer outside of the scenario.
func (s Scenario) step(c conversation) (Step, error) {
	if len(c.tools) == 0 {
		return Step{Text: "ok"}, nil
	}
	steps := s.Steps
	for _, v := range s.When {
		re, err := regexp.Compile(v.Prompt)
		if err != nil {
			return Step{}, fmt.Errorf("scenario's prompt: %w", err)
		}
		if re.MatchString(c.prompt) {
			steps = v.Steps
			break
		}
	}
	if len(steps) == 0 {
		return Step{}, fmt.Errorf("scenario has no steps")
	}
	st := steps[min(c.step, len(steps)-1)]
	var err error
	if st.Text, err = fill(st.Text, c, nil); err != nil {
		return Step{}, err
	}
	if st.End, err = fill(st.End, c, nil); err != nil {
		return Step{}, err
	}
	if st.Lines > 0 {
		st.Text += filler(st.Lines)
	}
	st.Text += st.End
	calls := make([]Call, len(st.Calls))
	for i, call := range st.Calls {
		if calls[i].Command, err = fill(call.Command, c, shellQuote); err != nil {
			return Step{}, err
		}
	}
	st.Calls = calls
	return st, nil
}

// fill replaces {{turn}} and {{prompt:REGEX}}, and leaves other braces alone. Text from the prompt is passed through quote.
func fill(text string, c conversation, quote func(string) string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{{")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}}")
		expr, isPrompt := strings.CutPrefix(name, "prompt:")
		switch {
		case closed && name == "turn":
			out.WriteString(strconv.Itoa(c.turn))
			text = after
		case closed && isPrompt:
			re, err := regexp.Compile(expr)
			if err != nil {
				return "", fmt.Errorf("placeholder: %w", err)
			}
			var value string
			if m := re.FindStringSubmatch(c.prompt); m != nil {
				value = m[min(1, len(m)-1)]
			}
			if quote != nil {
				value = quote(value)
			}
			out.WriteString(value)
			text = after
		default:
			out.WriteString("{{")
			text = rest
		}
	}
}

// filler returns text that is difficult for decoders.
func filler(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "line %05d: \"quoted\" \\back\\ \t tab é 漢字 \U0001F600 </tag> {{brace}}\n", i+1)
	}
	return b.String()
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

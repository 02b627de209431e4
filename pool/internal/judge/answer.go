package judge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// Bounds of an answer. A larger one does not count: the part beyond might matter.
const (
	answerLimit  = 128 << 10 // bytes
	mostFindings = 50
	textLimit    = 2000 // bytes kept of a finding's text
	fileLimit    = 300  // bytes of a path
	lineLimit    = 1 << 30
)

// schema returns the JSON schema of an answer.
func schema() []byte {
	return fmt.Appendf(nil, `{
	"type": "object", "additionalProperties": false, "required": ["accept", "solved", "tested", "findings"],
	"properties": {
		"accept": {"type": "boolean"}, "solved": {"type": "boolean"}, "tested": {"type": "boolean"},
		"findings": {"type": "array", "maxItems": %d, "items": {
			"type": "object", "additionalProperties": false, "required": ["severity", "text"],
			"properties": {
				"file": {"type": "string"}, "line": {"type": "integer", "minimum": 0, "maximum": %d},
				"severity": {"enum": ["critical", "major", "minor"]}, "text": {"type": "string", "minLength": 1}
			}
		}}
	}
}`, mostFindings, lineLimit)
}

// answer is a reviewer's answer. A nil field was not answered.
type answer struct {
	Accept   *bool             `json:"accept"`
	Solved   *bool             `json:"solved"`
	Tested   *bool             `json:"tested"`
	Findings []journal.Finding `json:"findings"`
}

// decode reads an answer strictly: every field, once, and nothing else. It cleans and shortens the texts.
func decode(text []byte) (answer, error) {
	if len(text) > answerLimit {
		return answer{}, fmt.Errorf("it has more than %d bytes", answerLimit)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var a answer
	if err := d.Decode(&a); err != nil {
		return answer{}, fmt.Errorf("it is not the JSON that was asked for: %s", oneLine(err.Error(), fileLimit))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return answer{}, errors.New("it has more text after its end")
	}
	if hasDuplicateKey(text) {
		return answer{}, errors.New("it has a key twice")
	}
	if a.Accept == nil || a.Solved == nil || a.Tested == nil {
		return answer{}, errors.New("accept, solved or tested is missing")
	}
	if len(a.Findings) > mostFindings {
		return answer{}, fmt.Errorf("it has more than %d findings", mostFindings)
	}
	for i := range a.Findings {
		f := &a.Findings[i]
		f.File, f.Text = oneLine(f.File, fileLimit), bounded(f.Text, textLimit)
		switch {
		case !slices.Contains(journal.Severities(), f.Severity):
			return answer{}, errors.New("it has a finding of an unknown severity")
		case f.Text == "":
			return answer{}, errors.New("it has a finding without a text")
		case f.Line < 0 || f.Line > lineLimit:
			return answer{}, errors.New("it has a finding with an impossible line number")
		}
	}
	return a, nil
}

// hasDuplicateKey reports whether an object in the JSON has a key more than once, in any case: decoding would keep the last.
func hasDuplicateKey(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	var open []map[string]bool // the keys of each open object; nil for a list
	key := false               // the next string is a key
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		in := len(open) - 1
		switch v := token.(type) {
		case json.Delim:
			switch v {
			case '{':
				open = append(open, map[string]bool{})
			case '[':
				open = append(open, nil)
			default:
				open = open[:in]
			}
			key = len(open) > 0 && open[len(open)-1] != nil
			continue
		case string:
			if key {
				name := strings.ToLower(v)
				if open[in][name] {
					return true
				}
				open[in][name], key = true, false
				continue
			}
		}
		key = in >= 0 && open[in] != nil
	}
}

// bounded returns at most limit bytes of a text without its invisible characters.
func bounded(text string, limit int) string {
	text, _ = tracker.Clean(text)
	return tracker.Cut(strings.TrimSpace(text), limit)
}

func oneLine(text string, limit int) string {
	return bounded(strings.Join(strings.Fields(text), " "), limit)
}

// accepts returns the decision. A reviewer who accepts but gives a reason against it has not accepted.
func (a answer) accepts() bool {
	return *a.Accept && *a.Solved && *a.Tested && !slices.ContainsFunc(a.Findings, func(f journal.Finding) bool {
		return f.Severity != journal.SeverityMinor
	})
}

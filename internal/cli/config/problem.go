package config

import (
	"strings"
)

// Problem is one thing wrong with the configuration.
type Problem struct {
	Where   string `json:"where,omitempty"` // "/repo/.ralph/config.yaml:3", "--parallel" or "RALPH_PARALLEL"
	Message string `json:"message"`
}

func (p Problem) Error() string {
	if p.Where == "" {
		return p.Message
	}
	return p.Where + ": " + p.Message
}

// Problems is the error of Load: all problems at once, so that they can be fixed together.
type Problems []Problem

// Error has one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// Origin says where an effective value comes from. The zero Origin is the default.
type Origin struct {
	Source Source
	Where  string // the flag, the variable, or file and line
}

// Source is one of the places a value can come from.
type Source string

// The sources, weakest first.
const (
	FromDefault     Source = "default"
	FromUser        Source = "user file"
	FromRepository  Source = "repository file"
	FromEnvironment Source = "environment"
	FromService     Source = "service file"
	FromFlag        Source = "flag"
)

func (o Origin) String() string {
	switch o.Source {
	case FromFlag:
		return "flag " + o.Where
	case FromEnvironment, FromRepository, FromUser, FromService:
		return o.Where
	case FromDefault:
	}
	return string(FromDefault)
}

// Name is how an error line names the key's value: by its flag or variable, or by its file, line and key.
func (o Origin) Name(key string) string {
	switch o.Source {
	case FromFlag, FromEnvironment:
		return o.Where
	case FromRepository, FromUser, FromService:
		return o.Where + ": " + key
	case FromDefault:
	}
	return key
}

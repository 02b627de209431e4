package config

import (
	"strings"
)

// Problem is one error in the configuration.
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

// Problems is the error of Load: all errors at once, so that the user can fix them together.
type Problems []Problem

// Error returns one line per problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// Origin is the place that set an effective value. The zero Origin is the default.
type Origin struct {
	Source Source
	Where  string // the flag, the variable, or file and line
}

// Source is a kind of place that can set a value.
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

// Name names the key's value in an error: by its flag or variable, else by file, line and key.
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

package pool

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// patterns of well-known credentials.
var credential = regexp.MustCompile(`\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{40,}|\bglpat-[A-Za-z0-9_-]{20,}|` +
	`\bsk-ant-[A-Za-z0-9_-]{24,}|\bsk-(?:proj-)?[A-Za-z0-9_-]{40,}|\bxox[abprs]-[A-Za-z0-9-]{20,}|\bAIza[0-9A-Za-z_-]{35}\b|` +
	`-----BEGIN [A-Z ]*PRIVATE KEY-----|\bnpm_[A-Za-z0-9]{36}\b`)

// maxFindings is how many findings a report names.
const maxFindings = 20

// policyError says what the commits may not bring.
type policyError struct{ findings []string }

func (e *policyError) Error() string {
	more := ""
	shown := e.findings
	if len(shown) > maxFindings {
		shown, more = shown[:maxFindings], fmt.Sprintf("; and %d more", len(e.findings)-maxFindings)
	}
	return strings.Join(shown, "; ") + more
}

// allowed looks at every commit of base..tip before anything of it leaves the repository.
func (p *Pool) allowed(ctx context.Context, base, tip string) error {
	var found []string
	note := func(s string) {
		if !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	changes, err := p.cfg.Repo.Changes(ctx, base, tip, func(file string, line []byte) {
		if p.secrets.in(string(line)) {
			note(fmt.Sprintf("%s brings a secret", file))
		}
	})
	if err != nil {
		return err
	}
	for _, file := range changes.Paths {
		if pattern := p.protects(file); pattern != "" {
			note(fmt.Sprintf("%s is protected (%s)", file, pattern))
		}
		if p.secrets.in(file) {
			note("a file's name carries a secret")
		}
	}
	for commit, object := range changes.Objects {
		if p.secrets.in(object) {
			note(fmt.Sprintf("the message, the author or another header of commit %.12s carries a secret", commit))
		}
	}
	if len(found) > 0 {
		slices.Sort(found)
		return &policyError{found}
	}
	return nil
}

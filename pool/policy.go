package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/worktree"
)

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

// allowed looks at every commit of base..tip before anything of it leaves the repository. What the base has got since
// the run began is not the agent's to answer for, where its branch contains that.
func (p *Pool) allowed(ctx context.Context, tree *worktree.Tree, base, tip string) error {
	err := p.mayBring(ctx, []string{base}, tip)
	var blocked *policyError
	if !errors.As(err, &blocked) {
		return err
	}
	now, nerr := tree.BaseNow(ctx)
	if nerr != nil {
		return nerr
	}
	if now == "" || now == base {
		return err
	}
	return p.mayBring(ctx, []string{base, now}, tip)
}

// mayBring looks at every commit of tip that is in none of the bases.
func (p *Pool) mayBring(ctx context.Context, bases []string, tip string) error {
	var found []string
	note := func(s string) {
		if !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	p.learn()
	scan := p.secrets.look().Scan(func(file string) { note(fmt.Sprintf("%s brings a secret", file)) })
	changes, err := p.cfg.Repo.Changes(ctx, bases, tip, scan.Line)
	if err != nil {
		return err
	}
	scan.End()
	aliases, err := p.aliases(ctx, bases, changes.Paths)
	if err != nil {
		return err
	}
	for _, file := range changes.Paths {
		if pattern := p.protects(file); pattern != "" {
			note(fmt.Sprintf("%s is protected (%s)", file, pattern))
		}
		if alias := aliases.protected(p, file, aliasDepth); alias != "" {
			note(fmt.Sprintf("%s is what the protected %s leads to", file, alias))
		}
		if p.secrets.in(file) {
			note("a file's name carries a secret")
		}
	}
	for _, link := range changes.Links {
		if pattern := p.protectsBelow(link); pattern != "" {
			note(fmt.Sprintf("%s is a link in place of a folder with protected files (%s)", link, pattern))
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

// learn adds what is secret in the agent's own login, as it is now: whoever renews it writes it anew.
func (p *Pool) learn() {
	if holder, ok := p.cfg.Agent.(agents.Holder); ok {
		p.secrets.Add(holder.Secrets(p.cfg.Network.User)...)
	}
}

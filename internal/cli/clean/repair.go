package clean

import (
	"context"
	"fmt"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/worktree"
)

// Leftovers lists what killed processes, lost folders and damage have left, except for issues that are being worked.
func Leftovers(ctx context.Context, p *compose.Parts) ([]worktree.Leftover, error) {
	found, err := p.Repo.Leftovers(ctx, true)
	if err != nil {
		return nil, err
	}
	c := cleaner{p: p}
	if c.local, err = worktree.Open(ctx, p.Top, p.Repository()); err != nil {
		return nil, err
	}
	if err := c.look(ctx); err != nil {
		return nil, err
	}
	alive, dead := c.runs()
	var all []worktree.Leftover
	for _, l := range found {
		if held := c.held[l.Key]; !alive[l.Key] && (held.Gone || held.Err == nil && held.Holder.Run == "") {
			all = append(all, l)
		}
	}
	for run, key := range dead {
		pids, err := proc.Parts(ctx, run)
		if err != nil {
			return nil, err
		}
		if len(pids) > 0 {
			all = append(all, worktree.Leftover{
				Kind:   "processes of a dead ralph",
				Where:  "run " + run,
				Detail: fmt.Sprintf("%d running, the first with pid %d", len(pids), pids[0]),
				Key:    key,
				Remove: func(ctx context.Context) (string, error) { return "", proc.KillParts(ctx, run) },
			})
		}
	}
	for key, claim := range c.held {
		if claim.Err != nil {
			drop := p.Repo.DropClaim
			if here, ok := c.jobs[key]; ok && here.Err == claim.Err { //nolint:errorlint // the very same
				drop = c.local.DropClaim
			}
			all = append(all, worktree.Leftover{
				Kind: "unreadable claim", Where: key, Detail: claim.Err.Error(), Key: key,
				Remove: func(ctx context.Context) (string, error) { return "", drop(ctx, key) },
			})
		}
	}
	return all, nil
}

// runs returns the keys that live ralph processes of this host work, and the keys of runs whose process is dead, by run.
func (c *cleaner) runs() (alive map[string]bool, dead map[string]string) {
	alive, dead = map[string]bool{}, map[string]string{}
	for id, r := range c.open {
		switch {
		case c.dead(id):
			dead[id] = r.Key
		case r.Host == c.host:
			alive[r.Key] = true
		}
	}
	for key, claim := range c.held {
		if claim.Gone && claim.Holder.Run != "" {
			dead[claim.Holder.Run] = key
		}
	}
	return alive, dead
}

// RepairedData is the result for one leftover.
type RepairedData struct {
	What    string `json:"what"`
	Where   string `json:"where"`
	Removed bool   `json:"removed"`
	Why     string `json:"why"`
}

// repairAll removes all Leftovers.
func repairAll(ctx context.Context, a *compose.App, p *compose.Parts, dry bool) error {
	found, err := Leftovers(ctx, p)
	if err != nil {
		return err
	}
	results, failed := []RepairedData{}, 0
	for _, l := range found {
		r := RepairedData{What: string(l.Kind), Where: l.Where, Why: l.Detail}
		if l.Remove != nil && !dry {
			became, err := l.Remove(ctx)
			if became != "" {
				r.Why = became
			}
			if r.Removed = err == nil; err != nil {
				r.Why = err.Error()
			}
		}
		if !r.Removed && !dry {
			failed++
		}
		results = append(results, r)
	}
	rows := [][]string{{"WHAT", "WHERE", "STATE", "WHY"}}
	for _, r := range results {
		rows = append(rows, []string{r.What, r.Where, removal(r.Removed, dry), r.Why})
	}
	if err := printRemoved(a, results, rows, "Nothing to repair."); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%s not repaired", screen.Plural(failed, "leftover"))
	}
	return nil
}

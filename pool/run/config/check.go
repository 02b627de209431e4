package config

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/worktree/claim"
)

// wrong returns an error for each number, path and text that would end a run, or this process, later.
func (c Config) wrong() (list []error) {
	say := func(format string, args ...any) { list = append(list, fmt.Errorf(format, args...)) }
	least := func(name string, ok bool, what string) {
		if !ok {
			say("%s must %s", name, what)
		}
	}
	least("Retry.MaxAttempts", c.Retry.MaxAttempts > 0, "be at least 1")
	least("KeepRuns", c.KeepRuns > 0, "be at least 1")
	least("ClaimTTL", c.ClaimTTL.Seconds() >= 1 && c.ClaimTTL <= claim.MaxTTL, "be at least a second, and at most a day")
	least("Reconcile", c.Reconcile > 0, "be more than 0")
	least("ProgressReport", c.ProgressReport > 0, "be more than 0")
	least("StopGrace", c.StopGrace >= 0, "not be negative")
	least("ShutdownWait", c.ShutdownWait >= 0, "not be negative")
	least("Retry.BackoffMax", c.Retry.BackoffMax >= 0, "not be negative")
	budgets := map[string]loop.Budget{
		"Budget": c.Budget, "PerRun": c.PerRun, "Iteration": c.Iteration, "Estimate": c.Estimate, "Caps.Day": c.Caps.Day, "Caps.Month": c.Caps.Month,
	}
	for who, share := range c.Shares {
		budgets["Shares["+who.String()+"]"] = share
	}
	for _, name := range slices.Sorted(maps.Keys(budgets)) {
		b := budgets[name]
		least(name, b.Tokens >= 0 && b.CostUSD >= 0 && !math.IsInf(b.CostUSD, 1), "not have negative numbers; 0 means no limit")
	}
	for n, v := range c.Env { // the value may be a secret, so errors leave it out
		if strings.Index(v, "=") < 1 || strings.ContainsRune(v, 0) {
			say("Env: entry %d is not NAME=VALUE, or has a null byte", n+1)
		}
	}
	inside := func(name string, paths []string) {
		for _, path := range paths {
			if !filepath.IsLocal(path) || path == "." {
				say("%s: %q is not a path inside the checkout", name, path)
			}
		}
	}
	inside("Copy", c.Copy)
	inside("SetupInputs", c.SetupInputs)
	for _, canary := range c.Canaries {
		inside("Canaries", []string{canary.Path})
	}
	line := func(name string, cmd loop.Command) {
		if err := cmd.Check(); err != nil {
			say("%s: %w", name, err)
		}
	}
	for _, cmd := range c.After {
		line("After", cmd)
	}
	for _, text := range c.Before {
		line("Before", loop.Command{Line: text})
	}
	if c.RetestCommand != "" {
		line("RetestCommand", loop.Command{Line: c.RetestCommand})
	}
	if err := c.Identity.Validate(); err != nil {
		say("Identity: %w", err)
	}
	for _, m := range c.Mounts {
		for _, path := range []string{m.Host, m.Inside} {
			if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
				say("Mounts: %q must be an absolute path", path)
			}
		}
	}
	list = append(list, c.oddNames()...)
	if strings.ContainsFunc(c.Pool, unicode.IsControl) {
		say("Pool %q has control characters", c.Pool)
	}
	return list
}

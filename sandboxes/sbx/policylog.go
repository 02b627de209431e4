package sbx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/sandboxes"
)

const (
	// logLimit is the time limit for reading the log, after which the microVM is removed.
	logLimit = 20 * time.Second
	// maxRefusals is the number of refusals that are listed; others are only counted.
	maxRefusals = 200
)

// readLog reads the connections that the policy refused, because sbx removes the log with the microVM. If the log cannot be
// read, a notice says so.
func (b *box) readLog(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, logLimit, fmt.Errorf("sbx has not answered for %s", logLimit))
	defer cancel()
	text, err := b.provider.call(ctx, "policy", "log", b.name, "--json")
	var list []sandboxes.Refusal
	if err == nil {
		list, err = readRefusals(text, b.name)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		b.refused, b.refusalsErr = list, nil
	case b.refused == nil: // otherwise an earlier Close has read it
		b.refusalsErr = err
	}
}

// Refusals returns the connections that the policy of sbx refused.
func (b *box) Refusals() (list []sandboxes.Refusal, more int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.refused), maxRefusals)
	for _, r := range b.refused[n:] {
		more += r.Count
	}
	return slices.Clone(b.refused[:n]), more
}

// Notices returns a notice if the policy's log could not be read.
func (b *box) Notices() []sandboxes.Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refusalsErr == nil {
		return nil
	}
	return []sandboxes.Notice{sandboxes.Noticef("the refused connections of the sbx policy are not known: %s", oneLine(b.refusalsErr.Error()))}
}

// destination matches a host, with or without a port, that is safe to show: commands inside choose it.
var destination = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}(:[0-9]{1,5})?$`)

// ruleName matches a rule's name, but not the sentence with which sbx says that no rule matches.
var ruleName = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9 ._:*/-]{0,63}$`)

// readRefusals decodes the output of "sbx policy log" for one microVM, the most frequent refusal first.
func readRefusals(text, name string) ([]sandboxes.Refusal, error) {
	var log struct {
		Blocked *[]struct {
			Host  string `json:"host"`
			Box   string `json:"vm_name"`
			Rule  string `json:"rule"`
			Count int    `json:"count_since"`
		} `json:"blocked_hosts"`
	}
	if err := decode(text, &log); err != nil {
		return nil, fmt.Errorf("read sbx policy log: %w", err)
	}
	if log.Blocked == nil {
		return nil, errors.New("read sbx policy log: it has no list of blocked hosts")
	}
	counts := make(map[sandboxes.Refusal]int)
	for _, e := range *log.Blocked {
		if e.Box != "" && e.Box != name {
			continue
		}
		r := sandboxes.Refusal{Reason: "sbx policy"}
		r.Host, r.Port = target(e.Host)
		if rule := strings.Trim(e.Rule, "<>"); ruleName().MatchString(rule) {
			r.Reason += ": " + rule
		}
		counts[r] = min(counts[r]+min(max(e.Count, 1), maxCount), maxCount)
	}
	list := make([]sandboxes.Refusal, 0, len(counts))
	for r, n := range counts {
		r.Count = n
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b sandboxes.Refusal) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port), strings.Compare(a.Reason, b.Reason))
	})
	return list, nil
}

// target splits a destination: a name or address, with or without a port.
func target(where string) (host string, port int) {
	host, after, err := net.SplitHostPort(where)
	if err != nil {
		host = where
	}
	if !destination().MatchString(where) && net.ParseIP(host) == nil {
		return "an invalid name", 0
	}
	port, _ = strconv.Atoi(after)
	return host, port
}

// maxCount prevents overflow of sums.
const maxCount = 1 << 30

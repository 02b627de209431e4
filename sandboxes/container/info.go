package container

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/internal/describe"
)

// engineInfo returns the engine's description of itself. It caches the first answer.
func (p *Provider) engineInfo(ctx context.Context) (describe.Engine, error) {
	p.mu.Lock()
	known := p.cachedInfo
	p.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	text, err := p.call(ctx, p.engine.dialect().info...)
	if err != nil {
		return describe.Engine{}, p.explain(ctx, err)
	}
	in, err := p.engine.dialect().describe([]byte(text))
	if err != nil {
		return describe.Engine{}, fmt.Errorf("read what %s says about itself: %w", p.engine.Name, err)
	}
	p.mu.Lock()
	p.cachedInfo = &in
	p.mu.Unlock()
	return in, nil
}

// checkLimits returns an error for an engine that would ignore limits.
func (p *Provider) checkLimits(in describe.Engine) error {
	if len(in.Lacking) == 0 || p.config.Unbounded {
		return nil
	}
	return sandboxes.Fixable(fmt.Errorf("%s cannot limit %s here: %w; delegate these cgroup controllers to your user "+
		"(systemd: Delegate=yes on cgroup v2)", p.engine.Name, strings.Join(in.Lacking, ", "), sandboxes.ErrUnsupported),
		sandboxes.Fix{Setting: sandboxes.SetUnbounded})
}

// image inspects the configured image.
func (p *Provider) image(ctx context.Context) (describe.Image, error) {
	text, err := p.call(ctx, "image", "inspect", p.config.Image)
	if err != nil {
		return describe.Image{}, p.explainImage(ctx, err)
	}
	img, err := describe.OneImage([]byte(text))
	if err != nil {
		return describe.Image{}, fmt.Errorf("read what %s says about image %s: %w", p.engine.Name, p.config.Image, err)
	}
	return img, nil
}

// numericUser returns the image's user if it is numeric. A name has a meaning only with the image's files.
func numericUser(i describe.Image) (user, bool) {
	if i.User == "" {
		return user{}, false
	}
	u, err := parseUser(i.User)
	return u, err == nil
}

// setUser returns the fix that runs commands as another user.
func setUser(u user) sandboxes.Fix {
	return sandboxes.Fix{Setting: sandboxes.SetUser, Value: u.String()}
}

// parseUser parses "UID" or "UID:GID"; the group defaults to the user's number.
func parseUser(text string) (user, error) {
	left, right, both := strings.Cut(text, ":")
	if !both {
		right = left
	}
	uid, err := strconv.ParseUint(left, 10, 31)
	gid, err2 := strconv.ParseUint(right, 10, 31)
	if err != nil || err2 != nil {
		return user{}, sandboxes.Fixable(fmt.Errorf("user %q is not UID:GID, in numbers", text), setUser(user{1000, 1000}))
	}
	return user{uid: int(uid), gid: int(gid)}, nil
}

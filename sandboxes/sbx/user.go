package sbx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// user is the user of commands in a microVM.
type user struct {
	uid, gid, groups string
	bounds           uint64   // capability bounding set
	env              []string // environment of its commands
}

// whoScript is passed as an argument: the user may have no access to the folder of scripts.
const whoScript = "id -u && id -g && id -G && grep ^CapBnd: /proc/self/status && exec cat /proc/self/environ"

// findUser determines the user of commands in the microVM, and the flags with which root can create namespaces.
func (b *box) findUser(ctx context.Context) error {
	text, err := b.provider.call(ctx, "exec", b.name, "sh", "-c", whoScript)
	if err != nil {
		return fmt.Errorf("try a command: %w", err)
	}
	if b.user, err = readUser(text); err != nil {
		return fmt.Errorf("ask who runs commands: %w", err)
	}
	// Whether root has all capabilities, or only with a flag, depends on the template.
	b.root = []string{"--user", "root"}
	if b.asRoot(ctx, "can") == nil {
		return nil
	}
	b.root, b.privileged = append(b.root, "--privileged"), true
	if err := b.asRoot(ctx, "can"); err != nil {
		return fmt.Errorf("root inside cannot make namespaces for commands: %w; the template needs util-linux 2.32 or newer", err)
	}
	return nil
}

// asRoot runs one of ralph's scripts inside as root.
func (b *box) asRoot(ctx context.Context, file string, args ...string) error {
	_, err := b.provider.call(ctx, slices.Concat([]string{"exec"}, b.root, []string{b.name, "sh", filepath.Join(b.state, file)}, args)...)
	return err
}

// runCommand returns the arguments that run a command. With --privileged, it limits capabilities to the user's bounding
// set.
func (b *box) runCommand(id string) []string {
	bounds := ""
	if b.privileged {
		bounds = "-all"
		for n := range 64 {
			if b.user.bounds&(1<<n) != 0 {
				bounds += ",+cap_" + strconv.Itoa(n)
			}
		}
	}
	args := slices.Concat([]string{"exec", "--interactive"}, b.root, []string{
		b.name, "sh", filepath.Join(b.state, "run"), id, b.user.uid, b.user.gid, b.user.groups, bounds, strconv.Itoa(b.pids),
	})
	if b.gitDir != "" {
		args = append(args, b.gitDir, b.workdir)
	}
	return args
}

// readUser decodes the output of whoScript.
func readUser(text string) (user, error) {
	m := regexp.MustCompile(`(?s)^(\d{1,10})\n(\d{1,10})\n(\d{1,10}(?: \d{1,10})*)\nCapBnd:\s*([0-9a-f]{1,16})\n(.*)$`).FindStringSubmatch(text)
	if m == nil {
		return user{}, fmt.Errorf("sbx exec prints %.80q, which names no user", text)
	}
	u := user{uid: m[1], gid: m[2], groups: strings.ReplaceAll(m[3], " ", ",")}
	var err error
	if u.bounds, err = strconv.ParseUint(m[4], 16, 64); err != nil {
		return user{}, err
	}
	for entry := range bytes.SplitSeq([]byte(m[5]), []byte{0}) {
		name, _, ok := bytes.Cut(entry, []byte("="))
		// A shell sets these itself.
		if ok && regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).Match(name) && !slices.Contains([]string{
			"PWD", "OLDPWD", "SHLVL", "_", "UID", "EUID", "GID", "PPID",
		}, string(name)) {
			u.env = append(u.env, string(entry))
		}
	}
	if len(u.env) == 0 {
		return user{}, errors.New("sbx exec gives a command no environment")
	}
	return u, nil
}

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/sandboxes"
)

// Shared by the sandboxes that show the host's own files.

// systemFolders returns the folders with the host's programs. They come from the system's packages and are the same for all
// users.
func systemFolders() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}
}

// systemSettings returns the entries of /etc that programs need. It leaves out those that may hold a secret or name other
// hosts, such as passwd, shadow, ssh, gitconfig, npmrc, environment, krb5 and resolv.conf.
func systemSettings() []string {
	return []string{
		"alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "fonts",
		"gai.conf", "host.conf", "inputrc", "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias",
		"locale.conf", "locale.gen", "localtime", "login.defs", "lsb-release", "magic", "mime.types", "networks", "os-release",
		"perl", "pki", "protocols", "python3", "rpc", "services", "shells", "ssl", "terminfo", "timezone", "xdg",
	}
}

// languageSettings returns patterns of more entries of /etc, installed by packages of programming languages.
func languageSettings() []string {
	return []string{
		"dotnet/install_location*", "java-*/*.cfg", "java-*/logging.properties", "java-*/net.properties", "java-*/security",
		"maven/logging", "maven/m2.conf",
	}
}

// SystemPaths returns the host's system folders and settings that every sandbox may read. They need not exist.
func SystemPaths() []string {
	paths := systemFolders()
	for _, name := range systemSettings() {
		paths = append(paths, "/etc/"+name)
	}
	for _, pattern := range languageSettings() {
		found, _ := filepath.Glob("/etc/" + pattern) // our own patterns are well-formed
		paths = append(paths, slices.DeleteFunc(found, func(path string) bool {
			info, err := os.Lstat(path)
			return err != nil || info.Mode()&fs.ModeSymlink != 0 // the folder of a link's target may be missing inside
		})...)
	}
	return paths
}

// defaultPath lists the standard folders of programs.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Path returns the PATH inside: the folders of the host's PATH for which seen is true (visible and not writable inside),
// then the standard folders.
func Path(host string, seen func(dir string) bool) string {
	var dirs []string
	for _, dir := range strings.Split(host+":"+defaultPath, ":") {
		own := slices.Contains(strings.Split(defaultPath, ":"), dir)
		if (own || filepath.IsAbs(dir) && seen(dir)) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}

// CheckFolder resolves all links of a path, and returns an error for a folder that no sandbox may show. name describes the
// folder in errors.
func CheckFolder(name, path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if Reserved(real) || Reserved(path) {
		return "", sandboxes.Fixable(fmt.Errorf("%s %s is in a place that the sandbox needs for itself", name, path),
			sandboxes.Fix{Setting: sandboxes.SetFolder}, sandboxes.Fix{Setting: sandboxes.SetProvider})
	}
	return real, nil
}

// Reserved reports whether a clean path is the root or in a kernel file system.
func Reserved(path string) bool {
	return path == "/" || sandboxes.IsInside(path, "/proc") || sandboxes.IsInside(path, "/sys") || sandboxes.IsInside(path, "/dev")
}

// Try opens a sandbox of a provider and runs a command in it.
func Try(ctx context.Context, p sandboxes.Provider) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	dir, remove, err := tempdir.Held("ralph-check-")
	if err != nil {
		return fmt.Errorf("check sandbox %s: %w", p.Name(), err)
	}
	defer func() { _ = remove() }()
	box, err := p.Open(ctx, sandboxes.Spec{Run: "check-" + dir, Worktree: dir})
	if err != nil {
		return err
	}
	exit, err := box.Exec(ctx, sandboxes.Command{Argv: []string{"true"}})
	if err == nil && !exit.OK() {
		err = fmt.Errorf("check sandbox %s: true ended with %+v", p.Name(), exit)
	}
	return errors.Join(err, box.Close(context.WithoutCancel(ctx))) // even if ctx has ended, the sandbox must be closed
}

package deploy_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// kubernetesVar is the variable with the program of e2e/kubernetes. `make soak` builds it.
const kubernetesVar = "RALPH_TEST_KUBERNETES"

// cluster is an API server without nodes: it accepts manifests and runs nothing.
type cluster struct {
	t                   *testing.T
	program, kubeconfig string
}

// address returns an unused address of this machine.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start runs a part of Kubernetes until the test ends, and shows its log if the test fails.
func (c *cluster) start(args ...string) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), c.program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Dir = c.t.TempDir()
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = cmd.Wait()
		if c.t.Failed() {
			c.t.Logf("%s:\n%s", args[0], out.String()[max(0, out.Len()-4000):])
		}
	})
}

// kubectl returns the output of a command, and fails the test if the command fails.
func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	out, err := c.try(c.t.Context(), args...)
	if err != nil {
		c.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (c *cluster) try(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.program, append([]string{"kubectl", "--kubeconfig", c.kubeconfig}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(c.kubeconfig))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// startCluster starts etcd and an API server, and waits until the server is ready.
func startCluster(t *testing.T, program string) *cluster {
	t.Helper()
	dir := t.TempDir()
	c := &cluster{t: t, program: program, kubeconfig: filepath.Join(dir, "kubeconfig")}
	store, peers, server := address(t), address(t), address(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"key":    string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})),
		"tokens": "of-the-test,admin,1,system:masters\n",
		"kubeconfig": fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: test\ncontexts: [{name: test, context: {cluster: test, user: test}}]\n"+
			"clusters: [{name: test, cluster: {server: 'https://%s', insecure-skip-tls-verify: true}}]\nusers: [{name: test, user: {token: of-the-test}}]\n", server),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.start("etcd", "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", "http://"+store, "--advertise-client-urls", "http://"+store,
		"--listen-peer-urls", "http://"+peers, "--unsafe-no-fsync")
	host, port, _ := net.SplitHostPort(server)
	c.start("apiserver", "--etcd-servers=http://"+store, "--service-cluster-ip-range=10.77.0.0/24", "--cert-dir="+filepath.Join(dir, "certs"),
		"--service-account-key-file="+filepath.Join(dir, "key"), "--service-account-signing-key-file="+filepath.Join(dir, "key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=Node,RBAC", "--token-auth-file="+filepath.Join(dir, "tokens"),
		"--bind-address="+host, "--advertise-address="+host, "--secure-port="+port, "--allow-privileged=true")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	again := time.NewTicker(300 * time.Millisecond)
	defer again.Stop()
	for {
		out, err := c.try(ctx, "get", "--raw", "/readyz")
		if err == nil {
			return c
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the API server is not ready: %v\n%s", err, out)
		case <-again.C:
		}
	}
}

// A real API server accepts each of our kustomizations unchanged and without warnings, and a second apply changes nothing.
func TestApply(t *testing.T) {
	t.Parallel()
	program := os.Getenv(kubernetesVar)
	if program == "" {
		t.Skipf("%s does not name the program of e2e/kubernetes; make soak does", kubernetesVar)
	}
	c := startCluster(t, program)
	found, err := filepath.Glob("*/kustomization.yaml")
	more, failed := filepath.Glob("*/*/kustomization.yaml")
	if found = append(found, more...); err != nil || failed != nil || len(found) < 2 {
		t.Fatal(found, err, failed)
	}
	for _, file := range found {
		dir := filepath.Dir(file)
		namespace := ""
		for line := range strings.Lines(c.kubectl("kustomize", dir)) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "namespace: "); ok {
				namespace = name
			}
		}
		if namespace == "" {
			t.Errorf("%s names no namespace", file)
			continue
		}
		if out, err := c.try(t.Context(), "create", "namespace", namespace); err != nil && !strings.Contains(out, "AlreadyExists") {
			t.Fatalf("%v\n%s", err, out)
		}
		c.kubectl("apply", "-k", dir, "--dry-run=server", "--validate=strict")
		var generations []string
		for n, want := range [][]string{{"created"}, {"unchanged", "configured"}} {
			for line := range strings.Lines(c.kubectl("apply", "-k", dir, "--validate=strict")) {
				if word := line[strings.LastIndex(line, " ")+1:]; !slices.Contains(want, strings.TrimSpace(word)) {
					t.Errorf("%s, the %d. time: %s", dir, n+1, line)
				}
			}
			generations = append(generations, c.kubectl("get", "-k", dir, "-o", "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.generation}\n{end}"))
		}
		if generations[0] != generations[1] || !strings.Contains(generations[0], "StatefulSet/ralph") {
			t.Errorf("%s changes what it has made: %q", dir, generations)
		}
		c.kubectl("delete", "-k", dir, "--wait=false")
	}
	// Control: the server rejects invalid manifests.
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nunknown: {a: b}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := c.try(t.Context(), "apply", "-f", bad, "--validate=strict"); err == nil || !strings.Contains(out, "unknown field") {
		t.Errorf("an unknown field is taken: %s", out)
	}
}

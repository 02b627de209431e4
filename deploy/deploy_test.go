// Package deploy_test checks the files for running ralph as a service.
package deploy_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/ralph-pool/ralph/internal/cli"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/pool/journal"
)

// The commands in the manual create the user and install the files in the places that the unit names.
func TestManualOfSystemd(t *testing.T) {
	t.Parallel()
	unit, manual := read(t, "systemd/ralph.service"), read(t, "../docs/operations.md")
	start := regexp.MustCompile(`(?m)^ExecStart=(\S+) .* (\S+)/serve\.yaml$`).FindStringSubmatch(unit)
	user := regexp.MustCompile(`(?m)^User=(\S+)$`).FindStringSubmatch(unit)
	if start == nil || user == nil {
		t.Fatal(unit)
	}
	for _, want := range []string{"bin/ralph " + start[1] + "\n", start[2] + "/serve.yaml\n", " " + user[1] + "\n    install", "deploy/systemd/* /etc/systemd/system/"} {
		if !strings.Contains(manual, want) {
			t.Errorf("docs/operations.md lacks %q", want)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// strict decodes a file and rejects keys that the type does not have.
func strict(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(read(t, path)), into); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// flags fails the test for a flag that `ralph serve` does not have.
func flags(t *testing.T, path string, args []string) {
	t.Helper()
	var help bytes.Buffer
	cli.Run(t.Context(), []string{"serve", "--help-all"}, compose.Host{Stdin: strings.NewReader(""), Stdout: &help, Stderr: &help, Dir: t.TempDir()})
	for _, arg := range args {
		if name, _, _ := strings.Cut(arg, "="); strings.HasPrefix(name, "--") && len(name) > 2 && !strings.Contains(help.String(), name+" ") {
			t.Errorf("%s: ralph serve has no flag %s", path, name)
		}
	}
}

// kustomization is a kustomization file.
type kustomization struct {
	APIVersion         string   `json:"apiVersion"`
	Kind               string   `json:"kind"`
	Namespace          string   `json:"namespace"`
	Resources          []string `json:"resources"`
	ConfigMapGenerator []struct {
		Name  string   `json:"name"`
		Files []string `json:"files"`
	} `json:"configMapGenerator"`
	GeneratorOptions struct {
		DisableNameSuffixHash bool `json:"disableNameSuffixHash"`
	} `json:"generatorOptions"`
}

func TestKubernetes(t *testing.T) {
	t.Parallel()
	var list kustomization
	strict(t, "kubernetes/kustomization.yaml", &list)
	var set appsv1.StatefulSet
	strict(t, "kubernetes/statefulset.yaml", &set)
	var service corev1.Service
	strict(t, "kubernetes/service.yaml", &service)
	strict(t, "kubernetes/networkpolicy.yaml", &networkingv1.NetworkPolicy{})
	for _, name := range append(list.Resources, list.ConfigMapGenerator[0].Files...) {
		if _, err := os.Stat(filepath.Join("kubernetes", name)); err != nil {
			t.Error(err)
		}
	}
	pod := set.Spec.Template
	if !equal(set.Spec.Selector.MatchLabels, pod.Labels) || !equal(service.Spec.Selector, pod.Labels) || set.Spec.ServiceName != service.Name {
		t.Error("selectors and labels do not fit")
	}
	if *set.Spec.Replicas != 1 {
		t.Error("two would share a journal")
	}
	c, mounted := pod.Spec.Containers[0], map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		mounted[v.Name] = true
	}
	for _, v := range set.Spec.VolumeClaimTemplates {
		mounted[v.Name] = true
	}
	for _, m := range c.VolumeMounts {
		if !mounted[m.Name] {
			t.Errorf("there is no volume %s", m.Name)
		}
	}
	if !*pod.Spec.SecurityContext.RunAsNonRoot || *c.SecurityContext.AllowPrivilegeEscalation || !slices.Contains(c.SecurityContext.Capabilities.Drop, "ALL") {
		t.Error("the container has more rights than it needs")
	}
	flags(t, "kubernetes/statefulset.yaml", c.Args)
	if kubectl, err := exec.LookPath("kubectl"); err == nil {
		if out, err := exec.CommandContext(t.Context(), kubectl, "kustomize", "kubernetes").CombinedOutput(); err != nil {
			t.Errorf("kubectl kustomize: %v\n%s", err, out)
		}
	}
}

func equal(a, b map[string]string) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return len(a) > 0
}

// composeFile is a compose file.
type composeFile struct {
	Machine  any `json:"x-machine"` // settings that the services share
	Services map[string]struct {
		Build struct {
			Context    string `json:"context"`
			Dockerfile string `json:"dockerfile"`
		} `json:"build"`
		Image       string            `json:"image"`
		Entrypoint  []string          `json:"entrypoint"`
		Command     []string          `json:"command"`
		Hostname    string            `json:"hostname"`
		Environment map[string]string `json:"environment"`
		DependsOn   map[string]struct {
			Condition string `json:"condition"`
		} `json:"depends_on"`
		Healthcheck struct {
			Test     []string `json:"test"`
			Interval string   `json:"interval"`
			Disable  bool     `json:"disable"`
		} `json:"healthcheck"`
		Restart         string   `json:"restart"`
		StopGracePeriod string   `json:"stop_grace_period"`
		ReadOnly        bool     `json:"read_only"`
		CapDrop         []string `json:"cap_drop"`
		SecurityOpt     []string `json:"security_opt"`
		PidsLimit       int      `json:"pids_limit"`
		MemLimit        string   `json:"mem_limit"`
		Ports           []string `json:"ports"`
		Secrets         []string `json:"secrets"`
		Tmpfs           []string `json:"tmpfs"`
		Volumes         []string `json:"volumes"`
	} `json:"services"`
	Volumes map[string]struct{} `json:"volumes"`
	Secrets map[string]struct {
		File string `json:"file"`
	} `json:"secrets"`
}

func TestContainer(t *testing.T) {
	t.Parallel()
	var file composeFile
	strict(t, "container/compose.yaml", &file)
	s := file.Services["ralph"]
	if _, err := os.Stat(filepath.Join("container", s.Build.Context, s.Build.Dockerfile)); err != nil {
		t.Error(err)
	}
	for _, name := range s.Secrets {
		if file.Secrets[name].File == "" {
			t.Errorf("there is no secret %s", name)
		}
	}
	flags(t, "container/compose.yaml", s.Command)
	docker := read(t, "container/Dockerfile")
	for _, line := range regexp.MustCompile(`(?m)^ENTRYPOINT .*`).FindAllString(docker, -1) {
		flags(t, "container/Dockerfile", regexp.MustCompile(`--[a-z-]+`).FindAllString(line, -1))
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))[1]
	if !strings.Contains(docker, "FROM golang:"+version+"-") {
		t.Errorf("the Dockerfile does not build with Go %s", version)
	}
	for _, name := range []string{"container/serve.yaml", "kubernetes/serve.yaml", "fleet/serve.yaml", "fleet/kubernetes/serve.yaml"} {
		if _, err := config.ReadService(name, nil, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	unit := read(t, "systemd/ralph.service")
	flags(t, "systemd/ralph.service", strings.Fields(regexp.MustCompile(`ExecStart=.*`).FindString(unit)))
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("RALPH_TEST_SYSTEMD") != "" {
			t.Fatal(err)
		}
		t.Skip("systemd-analyze is not here; RALPH_TEST_SYSTEMD makes that a failure")
	}
	dir := t.TempDir() // the unit's user and program must exist
	for _, name := range []string{"ralph.service", "ralph.socket"} {
		text := strings.NewReplacer("User=ralph", "User=root", "/usr/local/bin/ralph", "/bin/true").Replace(read(t, filepath.Join("systemd", name)))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", filepath.Join(dir, "ralph.service"), filepath.Join(dir, "ralph.socket")).CombinedOutput()
	if err != nil || strings.Contains(string(out), dir) {
		t.Errorf("%v\n%s", err, out)
	}
}

// The metrics and outcomes in alerts exist. The runbook has a section for each alert, and no others.
func TestAlerts(t *testing.T) {
	t.Parallel()
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	strict(t, "prometheus/alerts.yaml", &file)
	sources, err := filepath.Glob("../internal/web/*.go")
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[string]bool{}
	for _, source := range sources {
		for _, m := range regexp.MustCompile(`"(ralph_[a-z_]+)"`).FindAllStringSubmatch(read(t, source), -1) {
			metrics[m[1]] = true
		}
	}
	runbook := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (Ralph\w+)$`).FindAllStringSubmatch(read(t, "../docs/operations.md"), -1) {
		runbook[m[1]] = true
	}
	outcomes := journal.Outcomes()
	for _, rule := range file.Groups[0].Rules {
		for _, name := range regexp.MustCompile(`ralph_[a-z_]+`).FindAllString(rule.Expr, -1) {
			if !metrics[name] {
				t.Errorf("%s: there is no metric %s", rule.Alert, name)
			}
		}
		for _, m := range regexp.MustCompile(`outcome(?:=~|!=)"([^"]+)"`).FindAllStringSubmatch(rule.Expr, -1) {
			for name := range strings.SplitSeq(m[1], "|") {
				if !slices.Contains(outcomes, journal.Outcome(name)) {
					t.Errorf("%s: there is no outcome %s", rule.Alert, name)
				}
			}
		}
		if !runbook[rule.Alert] || rule.Annotations["runbook"] != "docs/operations.md#"+strings.ToLower(rule.Alert) {
			t.Errorf("%s has no section in the runbook, or names another", rule.Alert)
		}
		delete(runbook, rule.Alert)
	}
	for name := range runbook {
		t.Errorf("the runbook has %s, which is no alert", name)
	}
}

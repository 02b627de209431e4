package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// roles fails the test unless the arguments name the role and a database.
func roles(t *testing.T, path string, args []string, role string) {
	t.Helper()
	flags(t, path, args)
	if i := slices.Index(args, "--roles"); i < 0 || args[i+1] != role || !slices.Contains(args, "--database-file") {
		t.Errorf("%s: %q does not have the role %s in a fleet", path, args, role)
	}
}

// documents decodes all documents of a file strictly.
func documents[T any](t *testing.T, path string) (out []T) {
	t.Helper()
	for text := range strings.SplitSeq(read(t, path), "\n---\n") {
		var one T
		if err := yaml.UnmarshalStrict([]byte(text), &one); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		out = append(out, one)
	}
	return out
}

func TestFleetOnKubernetes(t *testing.T) {
	t.Parallel()
	const dir = "fleet/kubernetes/"
	var list kustomization
	strict(t, dir+"kustomization.yaml", &list)
	for _, name := range append(list.Resources, list.ConfigMapGenerator[0].Files...) {
		if _, err := os.Stat(dir + name); err != nil {
			t.Error(err)
		}
	}
	labels := map[string]map[string]string{}
	for _, role := range []string{"planner", "worker", "web", "postgres"} {
		var set appsv1.StatefulSet
		path := dir + role + ".yaml"
		strict(t, path, &set)
		pod := set.Spec.Template
		labels[role] = pod.Labels
		if !equal(set.Spec.Selector.MatchLabels, pod.Labels) || len(set.Spec.Selector.MatchLabels) != len(pod.Labels) || len(set.Spec.VolumeClaimTemplates) != 1 {
			t.Errorf("%s: selectors and labels do not fit, or its machines share a volume", path)
		}
		there := map[string]bool{}
		for _, v := range pod.Spec.Volumes {
			there[v.Name] = true
		}
		for _, v := range set.Spec.VolumeClaimTemplates {
			there[v.Name] = true
		}
		for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			for _, m := range c.VolumeMounts {
				if !there[m.Name] {
					t.Errorf("%s: there is no volume %s", path, m.Name)
				}
			}
			if *c.SecurityContext.AllowPrivilegeEscalation || !*c.SecurityContext.ReadOnlyRootFilesystem || !slices.Contains(c.SecurityContext.Capabilities.Drop, "ALL") {
				t.Errorf("%s: %s has more rights than it needs", path, c.Name)
			}
		}
		if !*pod.Spec.SecurityContext.RunAsNonRoot {
			t.Errorf("%s: it runs as root", path)
		}
		if role != "postgres" {
			roles(t, path, pod.Spec.Containers[0].Args, role)
		}
	}
	for _, s := range documents[corev1.Service](t, dir+"services.yaml") {
		want := map[string]string{"ralph": "web", "ralph-postgres": "postgres"}[s.Name]
		if !equal(s.Spec.Selector, labels[want]) {
			t.Errorf("service %s selects %v", s.Name, s.Spec.Selector)
		}
	}
	for _, p := range documents[networkingv1.NetworkPolicy](t, dir+"networkpolicy.yaml") {
		want := map[string]string{"ralph": "web", "ralph-postgres": "postgres"}[p.Name]
		if !equal(p.Spec.PodSelector.MatchLabels, pick(labels[want], p.Spec.PodSelector.MatchLabels)) {
			t.Errorf("policy %s selects %v", p.Name, p.Spec.PodSelector.MatchLabels)
		}
	}
	if kubectl, err := exec.LookPath("kubectl"); err == nil {
		if out, err := exec.CommandContext(t.Context(), kubectl, "kustomize", filepath.Clean(dir)).CombinedOutput(); err != nil {
			t.Errorf("kubectl kustomize: %v\n%s", err, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-n", dir+"clone.sh").CombinedOutput(); err != nil {
		t.Errorf("clone.sh: %v\n%s", err, out)
	}
}

// pick returns the entries of from whose keys are in keys.
func pick(from, keys map[string]string) map[string]string {
	out := map[string]string{}
	for k := range keys {
		out[k] = from[k]
	}
	return out
}

func TestFleetInContainers(t *testing.T) {
	t.Parallel()
	const path = "fleet/compose.yaml"
	var file composeFile
	strict(t, path, &file)
	if test := strings.Join(file.Services["postgres"].Healthcheck.Test, " "); !strings.Contains(test, "-h 127.0.0.1") {
		t.Errorf("%s: while the image makes the database, its server answers at its socket, and no other machine: %s", path, test)
	}
	for name, s := range file.Services {
		for _, secret := range s.Secrets {
			if file.Secrets[secret].File == "" {
				t.Errorf("%s: there is no secret %s", name, secret)
			}
		}
		for other := range s.DependsOn {
			if _, ok := file.Services[other]; !ok {
				t.Errorf("%s: there is no service %s", name, other)
			}
		}
		if len(s.Volumes) > 0 {
			if volume, _, _ := strings.Cut(s.Volumes[0], ":"); name != "postgres" && volume != name {
				t.Errorf("%s has the volume of %s: two would share a journal", name, volume)
			}
		}
		role, _, _ := strings.Cut(name, "-")
		if slices.Contains([]string{"planner", "worker", "web"}, role) {
			roles(t, path, s.Command, role)
			if i := slices.Index(s.Command, "--listen-host"); i < 0 || s.Command[i+1] != name {
				t.Errorf("%s: Prometheus cannot call it by its name: %q", name, s.Command)
			}
			if s.Image != "ralph" || !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") || s.Hostname != name {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
}

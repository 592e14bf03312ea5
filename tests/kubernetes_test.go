package tests

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// manifest is what the test reads of the manifests for Kubernetes.
type manifest struct {
	Kind string
	Data map[string]string
	Spec struct {
		Template struct {
			Spec struct {
				TerminationGracePeriodSeconds int
				Containers                    []struct {
					Args  []string
					Ports []struct {
						Name          string
						ContainerPort int
					}
					Env []struct {
						Name      string
						ValueFrom struct{ SecretKeyRef struct{ Name, Key string } }
					}
					StartupProbe, ReadinessProbe, LivenessProbe struct {
						HTTPGet struct{ Path, Port string }
					}
					Lifecycle struct {
						PreStop struct{ Sleep struct{ Seconds int } }
					}
					VolumeMounts []struct{ Name, MountPath string }
				}
				Volumes []struct {
					Name      string
					ConfigMap struct{ Name string }
					Secret    struct{ SecretName string }
				}
			}
		}
	}
}

// A replica that is started as the manifests say answers their probes, and all that they name exists.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	text := read(t, "deploy/kubernetes/nexus.yaml")
	all := map[string]manifest{}
	for part := range strings.SplitSeq(text, "\n---\n") {
		var m manifest
		object, err := yaml.YAMLToJSON([]byte(part))
		if err == nil {
			err = json.Unmarshal(object, &m) // without regard to case
		}
		if err != nil {
			t.Fatal(err)
		}
		all[m.Kind] = m
	}
	pod := all["StatefulSet"].Spec.Template.Spec
	if len(pod.Containers) != 1 || len(pod.Containers[0].Ports) != 1 || len(pod.Containers[0].VolumeMounts) == 0 {
		t.Fatalf("got %+v, want a container with a port and volumes", pod)
	}
	container := pod.Containers[0]

	// Secrets are made by the commands in the comment.
	comment, _, _ := strings.Cut(text, "apiVersion")
	has := func(secret, option string) {
		t.Helper()
		_, command, found := strings.Cut(comment, "create secret generic "+secret+" ")
		command, _, _ = strings.Cut(command, "kubectl")
		if !found || !strings.Contains(command, option) {
			t.Errorf("the commands make no secret %s with %s", secret, option)
		}
	}
	env := map[string]string{}
	for _, e := range container.Env {
		env[e.Name] = strings.Repeat("5a", 32)
		if ref := e.ValueFrom.SecretKeyRef; ref.Name != "" {
			has(ref.Name, "--from-literal="+ref.Key+"=")
		}
	}
	settings := all["ConfigMap"].Data["settings.yaml"]
	for _, volume := range pod.Volumes {
		for _, mount := range container.VolumeMounts {
			for _, word := range strings.FieldsFunc(settings, func(r rune) bool { return strings.ContainsRune(" ,{}\n", r) }) {
				if name, inside := strings.CutPrefix(word, mount.MountPath+"/"); inside && mount.Name == volume.Name {
					has(volume.Secret.SecretName, "--from-file="+name)
				}
			}
		}
	}
	var stop struct{ Shutdown struct{ Grace string } }
	if err := yaml.Unmarshal([]byte(settings), &stop); err != nil {
		t.Fatal(err)
	}
	grace, err := time.ParseDuration(stop.Shutdown.Grace)
	if least := grace + time.Duration(container.Lifecycle.PreStop.Sleep.Seconds)*time.Second + 10*time.Second; err != nil ||
		time.Duration(pod.TerminationGracePeriodSeconds)*time.Second < least {
		t.Errorf("got %d s (%v) until a pod is killed, want at least %v", pod.TerminationGracePeriodSeconds, err, least)
	}

	// The replica runs with the arguments and variables of the container.
	c := &replicated{t: t, dir: t.TempDir(), http: http.DefaultClient}
	c.config = filepath.Join(c.dir, "settings.yaml")
	c.nats = c.startNATS()
	c.configure(c.nats.URL(), "{url: http://127.0.0.1:1/mcp}")
	r := c.replica("unused")
	env["NEXUS_REPLICA"], env["NEXUS_ADVERTISE"] = "nexus-0", r.URL()
	for _, name := range slices.Sorted(maps.Keys(env)) {
		r.Env = append(r.Env, name+"="+env[name])
	}
	c.start(r)
	for name, probe := range map[string]struct{ Path, Port string }{
		"startup": container.StartupProbe.HTTPGet, "readiness": container.ReadinessProbe.HTTPGet, "liveness": container.LivenessProbe.HTTPGet,
	} {
		if status, body := c.page(r, http.MethodGet, probe.Path, ""); status != http.StatusOK || probe.Port != container.Ports[0].Name {
			t.Errorf("%s: got %d %s at the port %s, want 200", name, status, body, probe.Port)
		}
	}
	if log := c.logs[0]; !log.Has("joined the cluster", "replica=nexus-0") {
		t.Errorf("NEXUS_REPLICA has no effect")
	}
	if status, _ := c.page(r, http.MethodGet, "/healthz", ""); status != http.StatusUnauthorized {
		t.Errorf("NEXUS_API_KEY has no effect: got %d without a key", status)
	}
	second := c.replica("second")
	if err := second.Start(); err != nil { // without NEXUS_CLUSTER_KEY
		t.Fatal(err)
	}
	if code := second.Wait(); code != 1 || !c.logs[1].Has("NEXUS_CLUSTER_KEY") {
		t.Errorf("NEXUS_CLUSTER_KEY has no effect: got %d %s", code, c.logs[1])
	}
	want := fmt.Sprint([]string{"serve", "--config", container.VolumeMounts[0].MountPath})
	if got := fmt.Sprint(container.Args); got != want {
		t.Errorf("got the arguments %s, want %s", got, want)
	}
}

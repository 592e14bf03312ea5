package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agenticnexus/agenticnexus/config"
	"github.com/agenticnexus/agenticnexus/router"
)

type clusterCmd struct {
	Status clusterStatusCmd `cmd:"" help:"List the replicas that live, as one of them sees them."`
	Drain  clusterDrainCmd  `cmd:"" help:"Move the sessions of a replica to the others. It stays up and unready until it ends."`
}

// replica has the flags that select the replica to ask.
type replica struct {
	Config []string `help:"Configuration file or folder of a replica on this machine; may be repeated (default: config/ if it exists)." placeholder:"PATH" sep:"none"`
	remote
}

// resolve sets Remote to the address in the configuration unless the flag is given.
func (r *replica) resolve() error {
	if r.Remote != "" {
		return nil
	}
	cfg, err := config.Load(r.Config, config.Options{})
	if err != nil {
		return err
	}
	if !cfg.Cluster.Enabled() {
		return &exitError{exitUsage, "the configuration has no cluster; name a replica with --remote URL, or the configuration of one with --config"}
	}
	host, port, err := net.SplitHostPort(cfg.Listen)
	if ip, _ := netip.ParseAddr(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	r.Remote = "http://" + net.JoinHostPort(host, port)
	return err
}

type clusterStatusCmd struct {
	replica
	JSON bool `name:"json" help:"Print cluster of the structured content of health_check."`
}

func (c *clusterStatusCmd) Run(w *world) error {
	if err := c.resolve(); err != nil {
		return err
	}
	p, err := c.connect(w.ctx, nil)
	if err != nil {
		return err
	}
	defer p.close()
	h, err := healthOf(w.ctx, p)
	if err != nil {
		return err
	}
	if h.Cluster == nil {
		return fmt.Errorf("the router at %s runs alone; replicas have the setting cluster", c.Remote)
	}
	if c.JSON {
		err = printJSON(w, h.Cluster)
	} else {
		err = printCluster(w.stdout, h.Cluster)
	}
	if err == nil && h.Cluster.NATS != router.NATSConnected {
		return &exitError{code: exitPartly}
	}
	return err
}

func printCluster(to io.Writer, c *router.Cluster) error {
	var out strings.Builder
	fmt.Fprintf(&out, "cluster %s, seen by %s, NATS %s\n", c.Name, c.Replica, c.NATS)
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, r := range c.Replicas {
		fmt.Fprintf(table, "  %s\t%s\tversion %s\t%d sessions\tsince %s", firstLine(r.Name, 100), firstLine(r.Address, 200),
			firstLine(r.Version, 40), r.Sessions, r.Since.Local().Format(time.DateTime))
		if r.Draining {
			fmt.Fprint(table, "\tdraining")
		}
		fmt.Fprintln(table)
	}
	table.Flush() // a strings.Builder does not fail
	_, err := io.WriteString(to, out.String())
	return err
}

type clusterDrainCmd struct {
	Name string `arg:"" name:"replica" help:"Name of the replica."`
	replica
}

// maxReason bounds an answer of the page's interface, in bytes.
const maxReason = 64 << 10

// Run asks a replica through the interface of its page, because that knows who is an operator.
func (c *clusterDrainCmd) Run(w *world) error {
	if err := c.resolve(); err != nil {
		return err
	}
	base, headers, err := c.target()
	if err != nil {
		return err
	}
	address := base + "/ui/api/replicas/" + url.PathEscape(c.Name) + "/drain"
	request, err := http.NewRequestWithContext(w.ctx, http.MethodPost, address, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		request.Header.Set(name, value.Reveal())
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("cannot ask the router at %s: %w; start it, or correct --remote", c.Remote, err)
	}
	defer response.Body.Close()
	var refused struct {
		Error string `json:"error"`
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxReason)) // what came is enough for a message
	_ = json.Unmarshal(body, &refused)
	switch {
	case response.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("the router at %s wants a key; set NEXUS_API_KEY to one with ops: true", c.Remote)
	case refused.Error != "":
		return fmt.Errorf("the router at %s refuses: %s", c.Remote, firstLine(refused.Error, 300))
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("the router at %s answers with %s; is it of this version?", c.Remote, response.Status)
	}
	_, err = fmt.Fprintf(w.stdout, "%s is draining; nexus cluster status shows its sessions\n", c.Name)
	return err
}

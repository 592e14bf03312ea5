// Command run starts a NATS server, three replicas with the demo servers and a balancer on this machine, prints their
// URLs, and ends them at Ctrl-C. Its argument is the path of the nexus program.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/agenticnexus/agenticnexus/tests/clustertest"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: run NEXUS")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, program string) (err error) {
	program, err = filepath.Abs(program)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "nexus-cluster-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	nats, err := clustertest.NewNATS(filepath.Join(dir, "nats"))
	if err == nil {
		err = nats.Start()
	}
	if err != nil {
		return err
	}
	defer nats.Stop()
	config := filepath.Join(dir, "settings.yaml")
	if err := os.WriteFile(config, []byte("cluster: {nats: {url: \""+nats.URL()+"\"}}\n"), 0o600); err != nil {
		return err
	}
	var addresses []string
	for _, name := range []string{"r1", "r2", "r3"} {
		r, err := clustertest.NewReplica(program, config, name, dir)
		if err != nil {
			return err
		}
		r.Demo()
		r.Log = os.Stderr
		if err := r.Start(); err != nil {
			return err
		}
		defer r.Stop()
		if err := r.Ready(ctx); err != nil {
			return err
		}
		fmt.Printf("%s        %s/mcp   page %s/ui/\n", r.Name, r.URL(), r.URL())
		addresses = append(addresses, r.Address)
	}
	b, err := clustertest.NewBalancer(addresses...)
	if err != nil {
		return err
	}
	defer b.Close()
	fmt.Printf("balancer  %s/mcp\nNATS      %s\n\nnexus cluster status --remote %s\nCtrl-C ends everything.\n", b.URL(), nats.URL(), b.URL())
	<-ctx.Done()
	return nil
}

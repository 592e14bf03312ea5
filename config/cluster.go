package config

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/agenticnexus/agenticnexus/internal/pattern"
	"github.com/agenticnexus/agenticnexus/internal/redact"
	"github.com/agenticnexus/agenticnexus/internal/shared"
)

// Cluster joins this router to others as a replica. The zero NATS means that it runs alone.
type Cluster struct {
	NATS      NATS          `yaml:"nats"`
	Name      string        `yaml:"name"`      // clusters with other names share nothing
	Replica   string        `yaml:"replica"`   // name of this replica; with NATS never empty
	Advertise string        `yaml:"advertise"` // URL at which other replicas reach this one; empty = the address listened on
	Key       redact.Secret `yaml:"-"`         // NEXUS_CLUSTER_KEY; empty = none
}

// NATS tells how to connect to NATS. Paths are absolute.
type NATS struct {
	URL   string  `yaml:"url"`   // one or several, separated by commas; may hold user and password
	Creds string  `yaml:"creds"` // file of credentials; empty = none
	TLS   NATSTLS `yaml:"tls"`
}

// NATSTLS names the files of certificates for the connection to NATS, in PEM form.
type NATSTLS struct {
	CA   string `yaml:"ca"`   // that sign the certificates of NATS; empty = those of the system
	Cert string `yaml:"cert"` // of this client; empty = none
	Key  string `yaml:"key"`
}

// Enabled reports whether the router is a replica of a cluster.
func (c Cluster) Enabled() bool { return c.NATS.URL != "" }

// Address returns the URL at which other replicas reach this one, without a path. listen is the address that it listens
// on. The error is an *Error.
func (c Cluster) Address(listen string) (string, error) {
	if c.Advertise != "" {
		return c.Advertise, nil
	}
	host, port, err := net.SplitHostPort(listen)
	if ip, _ := netip.ParseAddr(host); err != nil || host == "" || port == "0" || ip.IsUnspecified() {
		return "", mistake("", nil, "cluster.advertise is needed, because %s is no address at which other replicas reach this "+
			"one; set it or NEXUS_ADVERTISE, such as http://10.0.0.5:8002", listen)
	}
	return "http://" + listen, nil
}

var (
	clusterName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	replicaName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$`) // any host name
)

// clusterCheck checks and completes the settings of a cluster.
type clusterCheck struct{ *checker }

func (c clusterCheck) cluster(s *Settings) {
	k := &s.Cluster
	if !k.Enabled() {
		if slices.ContainsFunc([]string{"nats.url", "nats.creds", "nats.tls", "name", "replica", "advertise"},
			func(key string) bool { return c.given("cluster." + key) }) {
			c.fail("cluster.nats.url", "is missing; want the address of NATS, such as nats://127.0.0.1:4222")
		}
		return
	}
	for address := range strings.SplitSeq(k.NATS.URL, ",") {
		if why := checkNATS(strings.TrimSpace(address)); why != "" {
			c.fail("cluster.nats.url", "%s", why)
		}
	}
	if !clusterName().MatchString(k.Name) {
		c.fail("cluster.name", `want up to 64 letters, digits, "-" and "_", starting with a letter or digit, got %s`, quote(k.Name))
	}
	c.identity(k)
	for _, file := range []struct {
		path string
		name *string
	}{
		{"creds", &k.NATS.Creds}, {"tls.ca", &k.NATS.TLS.CA}, {"tls.cert", &k.NATS.TLS.Cert}, {"tls.key", &k.NATS.TLS.Key},
	} {
		c.file("cluster.nats."+file.path, file.name)
	}
	if (k.NATS.TLS.Cert == "") != (k.NATS.TLS.Key == "") {
		c.fail("cluster.nats.tls", "needs both cert and key, or neither")
	}
	if key, _ := c.env("NEXUS_CLUSTER_KEY"); key != "" {
		k.Key = redact.Secret(key)
		if err := shared.CheckKey(key); err != nil {
			c.failAt(mistake("", nil, "%v", err))
		}
	}
	if c.err == nil && c.onlyHere(s) {
		c.warn("cluster", "cluster: other machines cannot reach this replica on loopback; set cluster.advertise")
	}
}

// identity completes and checks what tells this replica from others.
func (c clusterCheck) identity(k *Cluster) {
	const wantName = `want letters, digits, ".", "-" and "_", starting with a letter or digit, got %s`
	if name, _ := c.env("NEXUS_REPLICA"); name != "" {
		k.Replica = name
		if !replicaName().MatchString(name) {
			c.failAt(mistake("NEXUS_REPLICA", nil, wantName, quote(name)))
		}
	}
	if k.Replica == "" {
		k.Replica, _ = os.Hostname()
	}
	if !replicaName().MatchString(k.Replica) {
		c.fail("cluster.replica", wantName, quote(k.Replica))
	}
	advertised, _ := c.env("NEXUS_ADVERTISE")
	if advertised != "" {
		k.Advertise = advertised
	}
	k.Advertise = strings.TrimSuffix(k.Advertise, "/")
	switch why := checkAdvertise(k.Advertise); {
	case why == "":
	case advertised != "":
		c.failAt(mistake("NEXUS_ADVERTISE", nil, "%s", why))
	default:
		c.fail("cluster.advertise", "%s", why)
	}
}

// checkNATS returns what is wrong with the address of a NATS server, "" if nothing is. It does not quote the address,
// which may contain a password.
func checkNATS(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil, !slices.Contains([]string{"nats", "tls"}, u.Scheme), u.Hostname() == "":
		return "want a nats or tls URL, such as nats://127.0.0.1:4222"
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return "must not have a path, a query or a #fragment"
	}
	return ""
}

// checkAdvertise returns what is wrong with the address of a replica, "" if nothing is.
func checkAdvertise(address string) string {
	if address == "" {
		return ""
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Port() == "0":
		return "want the URL at which other replicas reach this one, such as http://10.0.0.5:8002"
	case u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		return "must have nothing but host and port"
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsUnspecified() {
		return "names no machine; want the URL at which other replicas reach this one, such as http://10.0.0.5:8002"
	}
	return ""
}

// file makes the name of a file absolute and, unless the configuration is loaded again, checks that it can be read.
func (c clusterCheck) file(path string, name *string) {
	if *name == "" {
		return
	}
	doc, _, _ := c.find(path)
	absolute, err := beside(doc.name, *name)
	if err == nil && c.used == nil {
		_, err = readFile(absolute, maxKeyFile)
	}
	if err != nil {
		c.fail(path, "cannot read %s: %v", c.got(path), err)
	}
	*name = absolute
}

// onlyHere reports whether other replicas can reach this one from this machine only, although NATS is elsewhere.
func (c clusterCheck) onlyHere(s *Settings) bool {
	local := func(address string) bool {
		u, err := url.Parse(strings.TrimSpace(address))
		return err == nil && OnLoopback(net.JoinHostPort(u.Hostname(), "0"))
	}
	own, err := s.Cluster.Address(s.Listen)
	return err == nil && local(own) && !slices.ContainsFunc(strings.Split(s.Cluster.NATS.URL, ","), local)
}

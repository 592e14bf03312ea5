package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
)

// settings are the values of the variables for one signal.
type settings struct {
	endpoint string
	headers  http.Header
	timeout  time.Duration
	gzip     bool
	tls      *tls.Config // nil = the default
}

const defaultTimeout = 10 * time.Second

// readSettings reads OTEL_EXPORTER_OTLP_{SIGNAL}_… and, if these are unset, OTEL_EXPORTER_OTLP_…. signal is "traces"
// or "metrics". See https://opentelemetry.io/docs/specs/otel/protocol/exporter/.
func readSettings(signal string) (settings, error) {
	s := settings{timeout: defaultTimeout, headers: http.Header{}}
	of := func(name string) (value, variable string) {
		const prefix = "OTEL_EXPORTER_OTLP_"
		for _, variable := range []string{prefix + strings.ToUpper(signal) + "_" + name, prefix + name} {
			if v := strings.TrimSpace(os.Getenv(variable)); v != "" {
				return v, variable
			}
		}
		return "", ""
	}
	if v, name := of("PROTOCOL"); v != "" && v != "http/protobuf" {
		return s, fmt.Errorf("%s: %q is not supported; use http/protobuf, usually on port 4318", name, v)
	}
	v, name := of("COMPRESSION")
	if v != "" && v != "none" && v != "gzip" {
		return s, fmt.Errorf("%s: want gzip or none, got %q", name, v)
	}
	s.gzip = v == "gzip"
	if v, name := of("TIMEOUT"); v != "" {
		ms, err := strconv.ParseUint(v, 10, 31)
		if err != nil {
			return s, fmt.Errorf("%s: want milliseconds, got %q", name, v)
		}
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	if v, name := of("HEADERS"); v != "" && !readHeaders(s.headers, v) {
		otel.Handle(errors.New("cannot parse headers in " + name + ": want NAME=VALUE,…")) // the value may be a secret
	}
	if err := s.readEndpoint(signal, of); err != nil {
		return s, err
	}
	return s, s.readCertificates(of)
}

// readEndpoint sets the URL. The general variable is a base URL, to which the signal's path is appended.
func (s *settings) readEndpoint(signal string, of func(string) (value, variable string)) error {
	v, name := of("ENDPOINT")
	if v == "" {
		v = "http://localhost:4318"
	}
	u, err := url.Parse(v)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%s: want an http or https URL", name)
	}
	if name == "" || name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u = u.JoinPath("v1", signal)
	}
	s.endpoint = u.String()
	return nil
}

// readHeaders parses a list such as "a=1,b=2" with percent-encoded values. It reports false if an entry is invalid.
func readHeaders(to http.Header, list string) bool {
	fine := true
	for entry := range strings.SplitSeq(list, ",") {
		name, value, ok := strings.Cut(entry, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || err != nil || name == "" {
			fine = false
			continue
		}
		to.Set(name, value)
	}
	return fine
}

func (s *settings) readCertificates(of func(string) (value, variable string)) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file, name := of("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s: %s has no PEM certificate", name, file)
		}
		s.tls = config
	}
	certificate, name := of("CLIENT_CERTIFICATE")
	key, _ := of("CLIENT_KEY")
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		config.Certificates = []tls.Certificate{pair}
		s.tls = config
	}
	return nil
}

package router

import "time"

// Cluster is the state of the cluster that the router is a replica of.
type Cluster struct {
	Name     string    `json:"name"`
	Replica  string    `json:"replica"`  // this one
	NATS     string    `json:"nats"`     // NATSConnected or NATSDisconnected
	Replicas []Replica `json:"replicas"` // that live, sorted by name
}

// Replica is a router of a cluster.
type Replica struct {
	Name     string    `json:"name"`
	Address  string    `json:"address"` // URL at which the others reach it
	Version  string    `json:"version"`
	Sessions int       `json:"sessions"` // of which it is the home
	Since    time.Time `json:"since"`    // when it started
	Draining bool      `json:"draining,omitempty"`
}

// States of the connection to NATS.
const (
	NATSConnected    = "connected"
	NATSDisconnected = "disconnected"
)

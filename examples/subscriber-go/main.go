// SPDX-License-Identifier: Apache-2.0

// Subscriber-go prints the live feed of a collector as JSON, one message a line, and what was lost.
// Messages and topics are explained in proto/feed.proto; the build's description of them,
// build/release/proto/feed.desc (installed: share/tracecollect/proto/feed.desc), takes the place of generated code.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

var (
	server   = flag.String("server", "", "nng URL of the feed, or @FILE: a collector's --ready-file")
	prefix   = flag.String("topic", "", `first bytes of the topics wanted, such as "shop/"`)
	count    = flag.Uint64("n", 0, "end after so many messages (0: never)")
	certs    = flag.String("certs", "", "folder with ca.pem, reader.pem and reader.key, for tls+tcp://")
	messages = flag.String("messages", "../../build/release/proto/feed.desc", "description of the messages")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	kind, err := feedMessage(*messages)
	if err != nil {
		return err
	}
	address, err := feedURL(*server)
	if err != nil {
		return err
	}
	feed, err := dial(address, *certs)
	if err != nil {
		return err
	}
	expected := map[string]uint64{} // the next number of each topic's count
	for seen := uint64(0); *count == 0 || seen < *count; {
		topic, body, err := feed.next()
		if err != nil {
			return err
		}
		if !strings.HasPrefix(topic, *prefix) {
			continue
		}
		message := dynamicpb.NewMessage(kind)
		if err := proto.Unmarshal(body, message); err != nil {
			return fmt.Errorf("%s: %w", topic, err)
		}
		began, seq, n := number(message, "began_wall_ns"), number(message, "seq"), number(message, "count")
		counted := fmt.Sprint(topic, began)
		if next, known := expected[counted]; known && seq > next {
			fmt.Printf("%s: lost %d\n", topic, seq-next)
		}
		expected[counted] = seq + n
		text, err := protojson.Marshal(message)
		if err != nil {
			return fmt.Errorf("%s: %w", topic, err)
		}
		fmt.Println(topic, string(text))
		seen += n
	}
	return nil
}

// feedMessage finds FeedMessage in the description.
func feedMessage(path string) (protoreflect.MessageDescriptor, error) {
	bytes, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(bytes, &set); err != nil {
		return nil, err
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, err
	}
	found, err := files.FindDescriptorByName("tracecollect.v1.FeedMessage")
	if err != nil {
		return nil, err
	}
	return found.(protoreflect.MessageDescriptor), nil
}

func number(m protoreflect.Message, field protoreflect.Name) uint64 {
	return m.Get(m.Descriptor().Fields().ByName(field)).Uint()
}

// feedURL is the URL itself, or the feed= line of a ready file.
func feedURL(where string) (string, error) {
	name, isFile := strings.CutPrefix(where, "@")
	if !isFile {
		return where, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if address, ok := strings.CutPrefix(line, "feed="); ok {
			return address, nil
		}
	}
	return "", fmt.Errorf("%s: has no feed= line", name)
}

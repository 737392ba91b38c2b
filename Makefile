# make demo places an encrypted call; make chat shows two people who chat; make test runs every test. All set up what they need and ask nothing.
SECONDS_OF_CALL ?= 10
.PHONY: demo chat test bench lint format fuzz mutants docs setup build clean

demo: setup
	@swift build -c release --product palbe-sfu
	@swift build -c release --product palbe-call
	@.build/release/palbe-call demo --seconds $(SECONDS_OF_CALL) $(ARGS)

chat:
	@scripts/chat $(ARGS)

# One after another: the tests of real servers and calls keep their time limits only when they have the cores.
test: setup
	@swift build --build-tests
	@scripts/check-api
	@swift test --skip-build --no-parallel $(ARGS)
	@scripts/test-real-clients

bench: setup
	@swift build -c release --product palbe-bench
	@.build/release/palbe-bench frames $(ARGS)
	@.build/release/palbe-bench mls $(MLS_ARGS)
	@.build/release/palbe-bench sfu $(SFU_ARGS)
	@.build/release/palbe-bench server $(SERVER_ARGS)

lint:
	@swift format lint --strict --recursive --parallel Package.swift Sources Tests bench samples
	@scripts/check

format:
	@swift format --in-place --recursive --parallel Package.swift Sources Tests bench samples

fuzz: setup
	@scripts/fuzz $(ARGS)

# Faults on purpose in the chat engine: the simulator or a test must notice each.
mutants: setup
	@scripts/mutants $(ARGS)

docs: setup
	@scripts/docs

setup:
	@scripts/setup

build: setup
	@swift build -c release

clean:
	@rm -rf .build out Tests/Fuzz/.build

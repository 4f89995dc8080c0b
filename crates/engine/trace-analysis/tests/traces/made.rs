//! Traces made by hand, in milliseconds.

use nearfield_trace_analysis::{
    Trace, Writer,
    model::{
        FORMAT, Header, Interval, Machine, Occupancy, Phase, Program, Record, Retune, Span, Step,
        Subregion, Theta, VERSION,
    },
};

/// From one millisecond to another.
pub(crate) fn at(begin: u64, end: u64) -> Interval {
    Interval::new(begin * 1_000_000, end * 1_000_000)
}

/// A trace of records.
pub(crate) fn trace(records: Vec<Record>) -> Trace {
    Trace::read(&bytes(&records)[..], "made.jsonl").unwrap()
}

/// The file of a trace.
pub(crate) fn bytes(records: &[Record]) -> Vec<u8> {
    let header = Header {
        format: FORMAT.into(),
        version: VERSION,
        program: Program {
            name: "made".into(),
            version: "1.0".into(),
            arguments: Vec::new(),
        },
        machine: Machine {
            processor: "a processor".into(),
            cores: 4,
            system: "linux x86_64".into(),
            gpus: vec!["a GPU".into()],
        },
        start_unix_ms: 1_795_300_000_000,
        rank: Some(0),
    };
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    for record in records {
        writer.write(record).unwrap();
    }
    writer.finish(10_000_000_000).unwrap()
}

pub(crate) fn step(number: u64, time: Interval) -> Record {
    Record::Step(Step {
        step: number,
        time,
        ..Step::default()
    })
}

pub(crate) fn span(name: &'static str, (id, parent): (u64, u64), time: Interval) -> Span {
    let backend = name.split('.').next().unwrap();
    Span {
        name: name.into(),
        backend: match backend {
            "grid" | "cpu" => Some("cpu".into()),
            "gpu" => Some("gpu".into()),
            _ => None,
        },
        phase: Phase::Compute,
        id,
        parent,
        thread: "main".into(),
        time,
        fields: Default::default(),
    }
}

/// Figures of a backend for a subregion; the work is in tested pairs.
pub(crate) fn subregion(step: u64, number: u64, backend: &'static str, work: u64) -> Subregion {
    Subregion {
        step: Some(step),
        subregion: number,
        backend: backend.into(),
        points: work / 10,
        cells: work / 100,
        work,
        theta: Some(Theta(12.0)),
        ..Subregion::default()
    }
}

/// A step of 100 ms: sorting, and two subregions that both backends share.
pub(crate) fn hybrid_step(number: u64, start: u64) -> Vec<Record> {
    let at = |begin, end| Some(at(start + begin, start + end));
    let stage = |name, id, begin, end| {
        let ids = (4 * number + id, 4 * number + 1);
        span(
            name,
            (ids.0, if id == 1 { 0 } else { ids.1 }),
            Interval::new((start + begin) * 1_000_000, (start + end) * 1_000_000),
        )
    };
    let mut whole = stage("sph.step", 1, 0, 100);
    whole.fields.insert(
        "step".into(),
        nearfield_trace_analysis::model::Value::Count(number),
    );
    vec![
        Record::Span(stage("grid.sort", 2, 0, 10)),
        Record::Subregion(Subregion {
            compute: at(10, 40),
            ..subregion(number, 0, "cpu", 3000)
        }),
        Record::Subregion(Subregion {
            upload: at(10, 20),
            compute: at(20, 50),
            download: at(50, 60),
            bytes_up: 1000,
            bytes_down: 500,
            pairs: Some(2_000_000),
            ..subregion(number, 0, "gpu", 7000)
        }),
        Record::Subregion(Subregion {
            compute: at(40, 60),
            ..subregion(number, 1, "cpu", 2000)
        }),
        Record::Subregion(Subregion {
            upload: at(20, 30),
            compute: at(50, 80),
            download: at(80, 90),
            bytes_up: 1000,
            bytes_down: 500,
            pairs: Some(1_000_000),
            ..subregion(number, 1, "gpu", 8000)
        }),
        // A stage around the subregions, which tell it better.
        Record::Span(stage("balance.run", 3, 10, 90)),
        Record::Span(whole),
        step(
            number,
            Interval::new(start * 1_000_000, (start + 100) * 1_000_000),
        ),
    ]
}

/// A hybrid run of `steps` steps whose policy settles after three.
pub(crate) fn hybrid_run(steps: u64) -> Vec<Record> {
    let mut records = Vec::new();
    for number in 0..steps {
        let start = 110 * number;
        let theta = |step: u64| Theta([4.0, 9.0, 15.0][step.min(2) as usize]);
        let mut made = hybrid_step(number, start);
        for record in &mut made {
            if let Record::Subregion(one) = record {
                one.theta = Some(theta(number));
                if one.backend == "cpu" {
                    one.work = [1000, 2000, 5000][number.min(2) as usize];
                }
            }
        }
        records.extend(made);
        records.push(Record::Occupancy(Occupancy {
            at: (start + 5) * 1_000_000,
            of: "bricks".into(),
            one_in: 1,
            counts: vec![
                [0, 5],
                [1, 40],
                [2, 80],
                [4, 120],
                [8, 60],
                [16, 20],
                [32, 4],
            ],
        }));
        records.push(Record::Retune(Retune {
            step: Some(number),
            at: (start + 101) * 1_000_000,
            subregion: None,
            policy: "model".into(),
            theta_before: Some(theta(number)),
            theta: Some(theta(number + 1)),
            reason: "the CPU backend was ready before the GPU backend".into(),
            ..Retune::default()
        }));
    }
    records
}
